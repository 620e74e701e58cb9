//! Route of the calls in a Claude Code transcript, derived from the forms of reply and request ids.

use super::super::recording::ProviderRoute;

#[derive(Default)]
pub(super) struct Ids {
    all: usize,
    own: usize,
    foreign: Option<String>,
    foreign_count: usize,
    without_request: usize,
}

impl Ids {
    /// Adds a reply. The provider's own API uses reply ids `msg_01…` and request ids `req_…`;
    /// Bedrock, Vertex and proxies do not.
    pub(super) fn add(&mut self, message: &str, request: &str) {
        self.all += 1;
        if message.starts_with("msg_")
            && !message.starts_with("msg_bdrk")
            && !message.starts_with("msg_vrtx")
        {
            self.own += usize::from(request.starts_with("req_"));
        } else if !message.is_empty() {
            self.foreign_count += 1;
            self.foreign.get_or_insert_with(|| message.chars().take(9).collect());
        }
        self.without_request += usize::from(!request.starts_with("req_"));
    }

    pub(super) fn route(&self) -> ProviderRoute {
        let all = self.all;
        let requests = format!("{} of {all} reply lines carry no request id", self.without_request);
        match &self.foreign {
            Some(id) if self.foreign_count * 2 > all => ProviderRoute::Gateway(format!(
                "{} of {all} reply lines have ids like {id}…, and {requests}",
                self.foreign_count
            )),
            _ if self.own * 2 > all => ProviderRoute::Direct(format!(
                "{} of {all} reply lines have the API's own message and request ids",
                self.own
            )),
            _ if all > 0 => ProviderRoute::Unknown(requests),
            _ => ProviderRoute::Unknown("no calls".into()),
        }
    }
}
