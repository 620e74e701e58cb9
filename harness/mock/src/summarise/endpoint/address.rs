//! Addresses of model servers: `openai+https://host/v1#model`.

use ctxbench_os::server_url::ServerUrl;
use hyper::Uri;

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
        let wrong = |e: ctxbench_os::server_url::AddressError| SetUpError(e.to_string());
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
        let model = model.filter(|m| !m.is_empty()).map(str::to_string);
        Ok(Address { dialect, server, url, model })
    }
}
