//! Messages whose parts a table describes: where each kind of block has its contents.

use crate::formats::prelude::*;

/// JSON pointers into a block, of which the first with a value counts.
type Places = &'static [&'static str];

pub(super) enum Block {
    Text(Places),
    /// Text and signature.
    Thought(Places, Places),
    /// Id, name and arguments.
    Call(Places, Places, Places),
    /// Id of the call, content, and what is true or a text if it failed.
    Result(Places, Places, Places),
    /// Address or data, and type.
    Image(Places, Places),
    /// Content for the user only.
    Shown,
}

pub(super) struct Shape {
    /// Returns the kind of a block, and the value that the pointers start from.
    pub(super) kind: fn(&Value) -> Option<(&str, &Value)>,
    /// Contents by kind, in this order. A block may have several.
    pub(super) blocks: &'static [(&'static str, Block)],
}

/// Returns the kind of a block that is its member `type`.
pub(super) fn typed(block: &Value) -> Option<(&str, &Value)> {
    Some((block["type"].as_str()?, block))
}

impl Shape {
    /// Converts content, which is a text, a block, or a list of these. Leaves out empty texts.
    pub(super) fn parts(&self, content: &Value) -> Vec<MessagePart> {
        match content {
            Value::String(text) if !text.is_empty() => vec![MessagePart::text(text)],
            Value::Array(list) => list.iter().flat_map(|block| self.parts(block)).collect(),
            Value::Object(_) => {
                let Some((kind, block)) = (self.kind)(content) else { return vec![] };
                let mut places = self.blocks.iter().filter(|(name, _)| *name == kind).peekable();
                if places.peek().is_none() {
                    return vec![MessagePart::Unknown(kind.to_string())];
                }
                places.filter_map(|(_, places)| self.part(places, block)).collect()
            }
            _ => vec![],
        }
    }

    fn part(&self, places: &Block, block: &Value) -> Option<MessagePart> {
        let text = |places| text_at(block, places);
        Some(match places {
            Block::Text(said) => MessagePart::text(text(said)?),
            Block::Thought(thought, signature) => {
                let (thought, signature) = (text(thought), text(signature));
                thought.or(signature)?;
                MessagePart::reasoning(thought.unwrap_or_default(), signature)
            }
            Block::Call(id, name, arguments) => MessagePart::call(
                text(id)?,
                text(name).unwrap_or_default(),
                value_at(block, arguments),
            ),
            Block::Result(id, content, failed) => MessagePart::Result {
                call_id: text(id)?.to_string(),
                pieces: self.parts(value_at(block, content)?),
                is_error: value_at(block, failed).is_some_and(|v| *v != false && *v != ""),
            },
            Block::Image(data, kind) => match text(data)? {
                url if url.contains(':') => MessagePart::image(url),
                data => {
                    let kind = text(kind).unwrap_or("image/png");
                    MessagePart::image(&format!("data:{kind};base64,{data}"))
                }
            },
            Block::Shown => return None,
        })
    }
}

/// Returns the first value that is not null, and not an empty text if there is another.
fn value_at<'a>(block: &'a Value, places: &[&str]) -> Option<&'a Value> {
    let found = || places.iter().filter_map(|at| block.pointer(at)).filter(|v| !v.is_null());
    found().find(|v| *v != "").or_else(|| found().next())
}

fn text_at<'a>(block: &'a Value, places: &[&str]) -> Option<&'a str> {
    places.iter().find_map(|at| block.pointer(at)?.as_str().filter(|text| !text.is_empty()))
}

/// Returns the step of message `number` of this role: a reply, or content for the model.
pub(super) fn message(
    role: &str,
    number: usize,
    id: Option<String>,
    model: Option<String>,
    pieces: Vec<MessagePart>,
) -> StepKind {
    if role != "assistant" {
        return StepKind::Input(Input { id, pieces });
    }
    let response = id.clone().unwrap_or_else(|| format!("message {number}"));
    StepKind::Reply(RecordingReply { id, model, ..RecordingReply::new(response, pieces) })
}
