//! Files of `ctxbench record`: every request to a provider as it was sent, and every answer.
//!
//! `line` is the file, `decode` reads bodies by the decoders of their wires, `seen` stores each
//! content once, `sorted` finds the conversations, and `steps` converts them. The recorder does not
//! interpret bodies, so improvements of the reader apply to old files, too.
//!
//! Rules, where the exchanges leave a choice:
//! - Requests with the system prompt or the tools of the largest conversation that continue no
//!   other one are separate sessions, unless a call began them. Other conversations belong to the
//!   session that was active: subagents `agent-N` with their messages, and side requests (`side-N`,
//!   `summary-N`: one request without tools), which are counted calls and not messages.
//! - A reply that the next request does not show was not taken, and that of a request that cannot be
//!   read: they are counted calls.
//! - A request that failed or broke off has no reply. The next request shows the part that the
//!   program kept; it has no counters.
//! - A compaction is found where calls of the conversation disappear, or a summary replaces them;
//!   its summary is the reply as the model wrote it. Its trigger is unknown.
//! - Times are those of this machine: a request's when it was there, a reply's when it was whole.

mod decode;
mod line;
mod seen;
mod sorted;
mod steps;

#[cfg(test)]
mod tests;

use ctxbench_provider::wire;

use crate::formats::prelude::*;

pub use line::{Bodies, Exchange, ExchangeEnd, Header, Line, Passed, RequestBody, VERSION};

pub(super) const FORMAT: Format = Format {
    title: "ctxbench record",
    name: "ctxbench-record",
    untold: "what the program did between its requests, who asked for a compaction, and the part of \
             a reply that came before its stream broke off",
    sniff,
    read,
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    let is_exchange = |o: &Map<String, Value>| o.contains_key("wire") && o.contains_key("at_ms");
    head.objects().any(|o| match str_of(o, "type") {
        Some("ctxbench_recording") => true,
        // The first line may break off.
        kind => kind == Some("exchange") && is_exchange(o),
    })
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let mut told = Recording::default();
    let all = seen::read(source, &mut told)?;
    told.route = route(&all);
    let sorted = sorted::sorted(&all);
    let mut paid = std::mem::take(&mut told.steps);
    let mut recordings = steps::recordings(&all, &sorted, &told);
    recordings.first_mut().unwrap_or(&mut told).steps.append(&mut paid);
    if recordings.is_empty() && told.warnings.len() + told.left_out.len() > 0 {
        // Notes on its lines explain why it is empty.
        recordings.push(told);
    }
    let several = recordings.len() > 1;
    for (n, recording) in (1..).zip(recordings) {
        let id = several.then(|| format!("{}-{n}", source.stem()));
        sink(Ok(Recording { id, ..recording }))?;
    }
    Ok(())
}

/// Returns whether the requests were sent to the provider itself.
fn route(all: &seen::Exchanges) -> ProviderRoute {
    let hosts: Vec<&str> = all.hosts.iter().map(String::as_str).collect();
    let told = hosts.join(", ");
    let of_provider = |host: &&str| {
        let addresses = wire::apis().into_iter().map(|a| a.address);
        addresses.filter_map(|a| a.split_once("://")).any(|(_, known)| known == *host)
    };
    match hosts.as_slice() {
        [] => ProviderRoute::default(),
        all if all.iter().all(of_provider) => {
            ProviderRoute::Direct(format!("requests went to {told}"))
        }
        _ => ProviderRoute::Unknown(format!("requests went to {told}")),
    }
}
