//! Addresses of model servers: `openai+https://host/v1#model`.

use hyper::Uri;

use super::KEY_VARIABLE;
use crate::summarise::SetUpError;

/// API of a real server. Only plain text with two roles is sent and read, in a form that older
/// servers also support, so this is less than a wire of the simulated providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointDialect {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API.
    OpenAi,
}

/// Address, API and model of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    dialect: EndpointDialect,
    url: Uri,
    model: Option<String>,
}

impl Address {
    /// Parses an address. The path is completed with `/v1/messages` for Anthropic or
    /// `/chat/completions` for OpenAI, as for the products' base addresses, unless it is complete.
    ///
    /// # Errors
    ///
    /// The message never repeats the address, which may contain a password.
    pub fn parse(text: &str) -> Result<Address, SetUpError> {
        let wrong = |what: String| Err(SetUpError(what));
        let syntax = |why: &str| {
            SetUpError(format!(
                "not a usable URL ({why}); expected one such as \
                 openai+http://localhost:8080/v1#MODEL or anthropic+https://host#MODEL"
            ))
        };
        let uri = |text: &str| text.parse::<Uri>().map_err(|e| syntax(&e.to_string()));
        let (place, model) = match text.split_once('#') {
            Some((_, "")) => {
                return wrong(
                    "no model after the # of the URL; expected the name of a model".into(),
                );
            }
            Some((place, model)) => (place, Some(model.to_string())),
            None => (text, None),
        };
        let (dialect, place) = match place.split_once('+') {
            Some(("anthropic", rest)) => (Some(EndpointDialect::Anthropic), rest),
            Some(("openai", rest)) => (Some(EndpointDialect::OpenAi), rest),
            _ => (None, place),
        };
        let base = uri(place)?;
        let scheme = base.scheme_str().ok_or_else(|| syntax("no http:// or https:// in it"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(syntax("only http and https are spoken"));
        }
        let authority = base
            .authority()
            .filter(|a| !a.host().is_empty())
            .ok_or_else(|| syntax("no host in it"))?;
        if authority.as_str().contains('@') {
            return wrong(format!(
                "the URL contains a user name or password; give a key in the environment variable \
                 {KEY_VARIABLE} instead"
            ));
        }
        if authority.port().is_none() && authority.as_str().len() > authority.host().len() {
            return Err(syntax("the port is not a number up to 65535"));
        }
        if base.query().is_some() {
            return wrong(format!(
                "the URL contains a query; put the model after #, a key into the environment \
                 variable {KEY_VARIABLE}"
            ));
        }
        let path = base.path().trim_end_matches('/');
        let dialect = match dialect {
            Some(w) => w,
            None if path.ends_with("/messages") => EndpointDialect::Anthropic,
            None if path.ends_with("/chat/completions") => EndpointDialect::OpenAi,
            None => {
                return wrong(
                    "the URL does not say how to ask; put anthropic+ or openai+ in front, or give \
                     a path that ends in /messages or /chat/completions"
                        .into(),
                );
            }
        };
        let rest = match dialect {
            EndpointDialect::Anthropic if path.ends_with("/messages") => "",
            EndpointDialect::Anthropic if path.ends_with("/v1") => "/messages",
            EndpointDialect::Anthropic => "/v1/messages",
            EndpointDialect::OpenAi if path.ends_with("/chat/completions") => "",
            EndpointDialect::OpenAi => "/chat/completions",
        };
        let url = uri(&format!("{scheme}://{authority}{path}{rest}"))?;
        Ok(Address { dialect, url, model })
    }

    /// Returns the API of the server.
    pub fn dialect(&self) -> EndpointDialect {
        self.dialect
    }

    /// Returns the URL of requests.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// Returns the host.
    pub fn host(&self) -> &str {
        self.url.host().unwrap_or_default()
    }

    /// Returns the model of the address. `None` = the model of each request is used.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns whether requests are encrypted or stay on this machine.
    pub fn is_private(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        let local = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        local || self.url.scheme_str() == Some("https")
    }
}
