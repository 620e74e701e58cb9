//! Addresses of servers that a user gives.

use std::net::IpAddr;

use hyper::Uri;
use thiserror::Error;

/// Address that cannot be used. The message never repeats it, since it may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a usable address ({0}); expected one such as https://api.example.com/v1")]
pub struct AddressError(pub &'static str);

/// Address of a server: `https://host:port/path`, without a password and a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl(Uri);

impl ServerUrl {
    pub fn parse(text: &str) -> Result<ServerUrl, AddressError> {
        let uri: Uri = text.trim().parse().map_err(|_| AddressError("it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err(AddressError("it begins with neither http:// nor https://"));
        }
        let authority = uri.authority().filter(|a| !a.host().is_empty());
        let authority = authority.ok_or(AddressError("no host in it"))?;
        if authority.as_str().contains('@') {
            return Err(AddressError("a user name or password in it"));
        }
        if authority.port().is_none() && authority.as_str().len() > authority.host().len() {
            return Err(AddressError("the port is not a number up to 65535"));
        }
        if uri.query().is_some() {
            return Err(AddressError("a query in it"));
        }
        Ok(ServerUrl(uri))
    }

    /// Returns host and port, as written.
    pub fn host(&self) -> &str {
        self.0.authority().map_or("", |a| a.as_str())
    }

    /// Returns the path without a slash at its end.
    pub fn path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// Returns whether requests are encrypted or stay on this machine.
    pub fn is_private(&self) -> bool {
        self.0.scheme_str() == Some("https") || is_loopback(self.host())
    }

    /// Returns the address with another path, to which a query may belong.
    pub fn with_path(&self, path: &str) -> Result<Uri, AddressError> {
        let uri = format!("{}://{}{path}", self.0.scheme_str().unwrap_or_default(), self.host());
        uri.parse().map_err(|_| AddressError("the path of a request does not fit to it"))
    }
}

/// Returns whether a host, with or without a port, is a name of loopback.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
