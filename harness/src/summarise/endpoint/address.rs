//! Addresses of model servers: `openai+https://host/v1#model`.

use hyper::Uri;

/// How a real server wants to be asked. Plain text under two roles is all that is sent and read, in
/// words that older servers know too, so this is less than a wire of the simulated providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAi,
}

/// Where to ask, how, and for which model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    dialect: Dialect,
    url: Uri,
    model: Option<String>,
}

/// An address that cannot be used. The text never repeats the address, in which somebody may have
/// put a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address at all.
    #[error(
        "not a usable URL ({0}); expected one such as openai+http://localhost:8080/v1#MODEL or \
         anthropic+https://host#MODEL"
    )]
    Syntax(String),
    /// Neither prefix nor path says which wire.
    #[error(
        "the URL does not say how to ask; put anthropic+ or openai+ in front, or give a path that \
         ends in /messages or /chat/completions"
    )]
    Wire,
    /// `user:password@host`.
    #[error(
        "the URL holds a user name or password; give a key in the environment variable {} instead",
        super::KEY_VARIABLE
    )]
    Login,
    /// `?…`
    #[error(
        "the URL holds a query; the model goes behind #, a key into the environment variable {}",
        super::KEY_VARIABLE
    )]
    Query,
    /// Nothing behind `#`.
    #[error("nothing stands behind the # of the URL; expected the name of a model")]
    Model,
}

impl Address {
    /// Reads an address. The path goes on as the products' own base addresses do: `/v1/messages`
    /// behind an Anthropic one, `/chat/completions` behind an OpenAI one; a path that has its end
    /// already stays.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let (place, model) = match text.split_once('#') {
            Some((_, "")) => return Err(AddressError::Model),
            Some((place, model)) => (place, Some(model.to_string())),
            None => (text, None),
        };
        let (dialect, place) = match place.split_once('+') {
            Some(("anthropic", rest)) => (Some(Dialect::Anthropic), rest),
            Some(("openai", rest)) => (Some(Dialect::OpenAi), rest),
            _ => (None, place),
        };
        let syntax = |why: &str| AddressError::Syntax(why.to_string());
        let base: Uri = place
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| AddressError::Syntax(e.to_string()))?;
        let scheme = base.scheme_str().ok_or_else(|| syntax("no http:// or https:// in it"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(syntax("only http and https are spoken"));
        }
        let authority = base
            .authority()
            .filter(|a| !a.host().is_empty())
            .ok_or_else(|| syntax("no host in it"))?;
        if authority.port().is_none()
            && authority.as_str().len() > authority.host().len()
            && !authority.as_str().contains('@')
        {
            return Err(syntax("the port is no number up to 65535"));
        }
        if authority.as_str().contains('@') {
            return Err(AddressError::Login);
        }
        if base.query().is_some() {
            return Err(AddressError::Query);
        }
        let path = base.path().trim_end_matches('/');
        let dialect = match dialect {
            Some(w) => w,
            None if path.ends_with("/messages") => Dialect::Anthropic,
            None if path.ends_with("/chat/completions") => Dialect::OpenAi,
            None => return Err(AddressError::Wire),
        };
        let rest = match dialect {
            Dialect::Anthropic if path.ends_with("/messages") => "",
            Dialect::Anthropic if path.ends_with("/v1") => "/messages",
            Dialect::Anthropic => "/v1/messages",
            Dialect::OpenAi if path.ends_with("/chat/completions") => "",
            Dialect::OpenAi => "/chat/completions",
        };
        let url = format!("{scheme}://{authority}{path}{rest}");
        let url = url
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| AddressError::Syntax(e.to_string()))?;
        Ok(Address { dialect, url, model })
    }

    /// How to ask.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Where requests go.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The host alone.
    pub fn host(&self) -> &str {
        self.url.host().unwrap_or_default()
    }

    /// The model to ask for; `None` = the one that each request names.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether what is sent stays between us and the server: encrypted, or on this machine.
    pub fn is_private(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        let local = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        local || self.url.scheme_str() == Some("https")
    }
}
