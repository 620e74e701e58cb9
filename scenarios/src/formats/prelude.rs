//! What the readers of the formats share.

pub(super) use ctxbench_core::content::Part;
pub(super) use ctxbench_session::{Billing, Trigger};
pub(super) use serde_json::{Map, Value, json};

pub(super) use super::counters::{Counters, cost, known, tokens};
pub(super) use super::format::{Ended, Format, Sink, no_parts};
pub(super) use super::json::{Document, Members};
pub(super) use super::lines::{
    self, RecordedLine, first_line, flag, given_up, hash_of, list_of, object_in, object_of,
    objects, of_lines, str_of, string,
};
pub(super) use super::messages::{self, MessageReader, content, definitions, text_of};
pub(super) use super::recording::{
    ContextPlace, Input, MessagePart, NoteKind, ProviderRoute, Recording, RecordingCompaction,
    RecordingReply, RecordingStep, StepKind, View, added, sent_around, weigh_reasoning,
};
pub(super) use super::source::{Head, Source, listed, unpacked};
pub(super) use super::time;
pub(super) use crate::error::InputError;
pub(super) use crate::escapes;
