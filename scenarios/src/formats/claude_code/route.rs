//! Route of the calls in a Claude Code transcript, derived from the forms of reply and request ids.

use crate::formats::prelude::*;

#[derive(Default)]
pub(super) struct Ids {
    all: usize,
    own: usize,
    foreign: usize,
}

impl Ids {
    /// Adds a reply. The provider's own API uses reply ids `msg_01…` and request ids `req_…`;
    /// Bedrock, Vertex and proxies do not.
    pub(super) fn add(&mut self, message: &str, request: &str) {
        let others = ["msg_bdrk", "msg_vrtx"];
        let is_own =
            message.starts_with("msg_") && !others.iter().any(|form| message.starts_with(form));
        self.all += 1;
        self.own += usize::from(is_own && request.starts_with("req_"));
        self.foreign += usize::from(!is_own && !message.is_empty());
    }

    pub(super) fn route(&self) -> ProviderRoute {
        let told = |n: usize, what: &str| format!("{n} of {} reply lines have {what}", self.all);
        if self.foreign * 2 > self.all {
            return ProviderRoute::Gateway(told(self.foreign, "ids of another form"));
        }
        let why = told(self.own, "the API's own message and request ids");
        if self.own * 2 > self.all {
            ProviderRoute::Direct(why)
        } else {
            ProviderRoute::Unknown(why)
        }
    }
}
