//! Addresses of model servers: `openai+https://host/v1#model`.

use ctxbench_os::server_url::{AddressError, ServerUrl};
use hyper::Uri;

use super::KEY_VARIABLE;
use crate::summarise::SetUpError;

/// API of a real server. Only plain text with two roles is sent and read, in a form that older
/// servers also support, so this is less than a wire of the simulated providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointDialect {
    Anthropic,
    OpenAi,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) dialect: EndpointDialect,
    pub(super) server: ServerUrl,
    pub(super) url: Uri,
    /// `None` = the model of each request is used.
    pub(super) model: Option<String>,
}

impl Address {
    /// Parses an address. The path is completed with `/v1/messages` for Anthropic or
    /// `/chat/completions` for OpenAI, as for the products' base addresses, unless it is complete.
    ///
    /// # Errors
    ///
    /// The message never repeats the address, which may contain a password.
    pub fn parse(text: &str) -> Result<Address, SetUpError> {
        let (place, model) = text.split_once('#').map_or((text, None), |(p, m)| (p, Some(m)));
        let (api, place) = match place.split_once('+') {
            Some((api @ ("anthropic" | "openai"), rest)) => (api, rest),
            _ => ("", place),
        };
        let wrong = |AddressError(why): AddressError| {
            SetUpError(format!(
                "not a usable address ({why}); expected one such as \
                 openai+http://localhost:8080/v1#MODEL, and a key in the environment variable \
                 {KEY_VARIABLE}"
            ))
        };
        if model == Some("") {
            let text = "no model after the # of the address; expected the name of a model";
            return Err(SetUpError(text.into()));
        }
        let server = ServerUrl::parse(place).map_err(wrong)?;
        let path = server.path();
        let (dialect, rest) = match api {
            "" | "anthropic" if path.ends_with("/messages") => (EndpointDialect::Anthropic, ""),
            "" | "openai" if path.ends_with("/chat/completions") => (EndpointDialect::OpenAi, ""),
            "anthropic" if path.ends_with("/v1") => (EndpointDialect::Anthropic, "/messages"),
            "anthropic" => (EndpointDialect::Anthropic, "/v1/messages"),
            "openai" => (EndpointDialect::OpenAi, "/chat/completions"),
            _ => {
                return Err(SetUpError(
                    "the URL does not say how to ask; put anthropic+ or openai+ in front, or give \
                     a path that ends in /messages or /chat/completions"
                        .into(),
                ));
            }
        };
        let url = server.with_path(&format!("{path}{rest}")).map_err(wrong)?;
        Ok(Address { dialect, server, url, model: model.map(str::to_string) })
    }
}
