//! Addresses of model servers: `openai+https://host/v1#model`.

use ctxbench_core::model::Wire;
use ctxbench_provider::format;
use ctxbench_provider::wire::Family;
use hyper::Uri;

/// The wires that summaries are asked for on, by the word in front of an address.
const WIRES: [(&str, Wire); 2] =
    [("anthropic", Wire::AnthropicMessages), ("openai", Wire::OpenaiChat)];

/// What the paths of the wires begin with.
const VERSION: &str = "/v1";

/// Where to ask, how, and for which model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    wire: Wire,
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
        let named = place.split_once('+').and_then(|(word, rest)| {
            WIRES.iter().find(|(name, _)| *name == word).map(|(_, w)| (Some(*w), rest))
        });
        let (wire, place) = named.unwrap_or((None, place));
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
        // Base addresses of OpenAI's clients hold the version, those of Anthropic's need not.
        let whole = |w: Wire| format(w).path("");
        let end = |w: Wire| whole(w).trim_start_matches(VERSION).to_string();
        let told = || WIRES.iter().map(|(_, w)| *w).find(|w| path.ends_with(&end(*w)));
        let wire = wire.or_else(told).ok_or(AddressError::Wire)?;
        let rest = match format(wire).family() {
            _ if path.ends_with(&end(wire)) => String::new(),
            Family::Anthropic if !path.ends_with(VERSION) => whole(wire),
            _ => end(wire),
        };
        let url = format!("{scheme}://{authority}{path}{rest}");
        let url = url
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| AddressError::Syntax(e.to_string()))?;
        Ok(Address { wire, url, model })
    }

    /// How to ask.
    pub fn wire(&self) -> Wire {
        self.wire
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
