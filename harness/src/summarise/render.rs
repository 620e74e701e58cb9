//! Rendering of the chosen candidates under the requested headings.

use super::ask::Instruction;
use super::collect::{SummaryCandidate, USER};
use super::sentences::tidy;
use super::topic::Topic;

/// Placeholder under an empty heading.
const EMPTY: &str = "- (none)\n";

/// Renders the summary. `thoughts` is placed between `<analysis>` tags where they are requested.
pub(super) fn render(
    ask: &Instruction,
    units: &[SummaryCandidate<'_>],
    chosen: &[usize],
    thoughts: &str,
) -> String {
    let mut ordered: Vec<&SummaryCandidate<'_>> = chosen.iter().map(|&i| &units[i]).collect();
    ordered.sort_by_key(|u| u.order);
    let mut out = String::new();
    if ask.analysis_tag {
        out.push_str("<analysis>\n");
        out.push_str(thoughts);
        out.push_str("\n</analysis>\n\n");
    }
    if ask.summary_tag {
        out.push_str("<summary>\n");
    }
    if ask.headings.is_empty() {
        plain(ask, &ordered, &mut out)
    } else {
        headed(ask, &ordered, &mut out)
    }
    let end = out.trim_end().len();
    out.truncate(end);
    if ask.summary_tag {
        out.push_str("\n</summary>");
    }
    out
}

fn headed(ask: &Instruction, units: &[&SummaryCandidate<'_>], out: &mut String) {
    let places = ask.places();
    let place =
        |t: Topic| Topic::ALL.iter().zip(places).find(|(o, _)| **o == t).map_or(0, |(_, p)| p);
    let mut under: Vec<Vec<&SummaryCandidate<'_>>> = vec![Vec::new(); ask.headings.len()];
    for u in units {
        under[place(u.topic)].push(u);
    }
    // If there are two headings about the next step, the second is for the immediate one.
    let next = place(Topic::Next);
    if let Some(second) =
        ask.second_next(next).filter(|&s| under[s].is_empty() && under[next].len() > 1)
    {
        let newest = under[next].pop();
        under[second].extend(newest);
    }
    for (h, list) in ask.headings.iter().zip(&under) {
        out.push_str(&h.line);
        out.push('\n');
        for u in list {
            line(u, false, out);
        }
        if list.is_empty() {
            out.push_str(EMPTY);
        }
        out.push('\n');
    }
}

fn plain(ask: &Instruction, units: &[&SummaryCandidate<'_>], out: &mut String) {
    if let Some(o) = &ask.opening {
        out.push_str(o);
        out.push_str(":\n");
    }
    for t in Topic::ALL {
        let before = out.len();
        for u in units.iter().filter(|u| u.topic == t) {
            // An opening such as "I asked you" names the author already.
            line(u, ask.opening.is_none(), out);
        }
        if out.len() > before {
            out.push('\n');
        }
    }
}

fn line(u: &SummaryCandidate<'_>, name_user: bool, out: &mut String) {
    out.push_str("- ");
    if u.raw {
        out.push_str(&u.text);
    } else {
        if u.user && name_user {
            out.push_str(USER);
        }
        out.push_str(&tidy(&u.text));
        if u.cut {
            out.push('…');
        }
    }
    out.push('\n');
}
