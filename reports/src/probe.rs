//! Answers of a model to questions about facts, and how they relate to recall.

use serde::Serialize;

use crate::record::{Recall, wilson};
use crate::table::wrap;
use crate::{fmt, grid};

/// A question about a fact at a need.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbeQuestion {
    pub session: String,
    pub fact: String,
    pub need: String,
    pub text: String,
    /// Literal that a right answer has.
    pub expected: String,
}

/// The answer to a question about the context of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeAnswer {
    /// Index of the question.
    pub question: usize,
    /// Whether the context showed the fact, as recall counts it.
    pub is_present: bool,
    pub is_right: bool,
    pub text: String,
}

/// Answers for the contexts of a strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeRow {
    pub strategy: String,
    /// Recall over all needs of the sessions, not only those of the questions.
    pub recall: Recall,
    pub answers: Vec<ProbeAnswer>,
}

/// Answers of a model about the contexts of several strategies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    pub model: String,
    pub questions: Vec<ProbeQuestion>,
    pub rows: Vec<ProbeRow>,
    pub notes: Vec<String>,
}

/// Number of right answers among some questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RightAnswers {
    right: u32,
    asked: u32,
}

const WIDTH: usize = 80;
const LABEL: usize = 24;

impl RightAnswers {
    /// Counts the answers about facts that were present, or those about absent ones.
    fn count<'a>(answers: impl Iterator<Item = &'a ProbeAnswer>, is_present: bool) -> RightAnswers {
        answers.filter(|a| a.is_present == is_present).fold(RightAnswers::default(), |n, a| {
            RightAnswers { right: n.right + u32::from(a.is_right), asked: n.asked + 1 }
        })
    }

    /// Returns the share and the ends of its interval of 95 % (Wilson), 0 to 1; `None` without questions.
    fn share(self) -> Option<[f64; 3]> {
        let n = f64::from(self.asked);
        let share = f64::from(self.right) / n;
        let [low, high] = wilson(share, n);
        (self.asked > 0).then_some([share, low, high])
    }

    fn to_text(self) -> String {
        fmt::known(self.share(), |[share, low, high]| {
            let RightAnswers { right, asked } = self;
            let [share, low, high] = [share, low, high].map(|x| 100.0 * x);
            format!("{right}/{asked} = {share:.0} % ({low:.0}–{high:.0})")
        })
    }
}

impl Probe {
    fn right(&self, is_present: bool) -> RightAnswers {
        RightAnswers::count(self.rows.iter().flat_map(|row| &row.answers), is_present)
    }

    /// Says how recall relates to right answers. The interval of the difference is Newcombe's.
    fn conclusion(&self) -> String {
        let [present, absent] = [true, false].map(|is_present| self.right(is_present).share());
        let (Some([p, p_low, p_high]), Some([a, a_low, a_high])) = (present, absent) else {
            let missing = if present.is_none() { "present" } else { "absent" };
            return format!(
                "No conclusion: no question is about a fact that was {missing}. Add strategies or \
                 thresholds with more or less recall."
            );
        };
        let side = |x: f64, y: f64| 100.0 * x.hypot(y);
        let difference = 100.0 * (p - a);
        let low = difference - side(p - p_low, a_high - a);
        let high = difference + side(p_high - p, a - a_low);
        let begin = match (low > 0.0, high < 0.0) {
            (true, _) => "Recall predicts right answers",
            (_, true) => "Recall predicts wrong answers; look at them with --json",
            _ => "It is open whether recall predicts right answers; ask more --questions",
        };
        format!(
            "{begin}: a fact in the context changes their share by {difference:+.0} points (95 % \
             interval {low:+.0} to {high:+.0})."
        )
    }

    /// Formats a table with a conclusion.
    pub fn to_text(&self) -> String {
        let heading = format!(
            "{} asked about {} contexts: {} questions each.",
            fmt::one_line(&self.model),
            self.rows.len(),
            self.questions.len()
        );
        let row = |(label, recall, all): (&str, String, Vec<&ProbeAnswer>)| {
            let right = |present| RightAnswers::count(all.iter().copied(), present).to_text();
            vec![fmt::elide(label, LABEL), recall, right(true), right(false)]
        };
        let own = self.rows.iter().map(|r| {
            (&*r.strategy, fmt::known(r.recall.pct, fmt::pct), r.answers.iter().collect())
        });
        let all = self.rows.iter().flat_map(|r| &r.answers).collect();
        let rows = own.chain([("all", String::new(), all)]).map(row);
        let head = ["", "recall %", "right if present", "right if absent"].map(String::from);
        let mut lines = wrap(&heading, WIDTH, "  ");
        lines.extend(grid::draw(head.to_vec(), rows, |i| i > 0, |i| (0, u16::from(i < 3))));
        lines.extend(wrap(&self.conclusion(), WIDTH, "  "));
        lines.extend(self.notes.iter().flat_map(|note| wrap(note, WIDTH, "  ")));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the conclusion from right and wrong answers about present and about absent facts.
    fn concluded(present: (usize, usize), absent: (usize, usize)) -> String {
        let answers = |(right, wrong): (usize, usize), is_present| {
            let answer = move |i| ProbeAnswer {
                question: i,
                is_present,
                is_right: i < right,
                text: String::new(),
            };
            (0..right + wrong).map(answer)
        };
        let answers = answers(present, true).chain(answers(absent, false)).collect();
        let row = ProbeRow { strategy: "x".into(), recall: Recall::default(), answers };
        let (questions, notes) = (Vec::new(), Vec::new());
        Probe { model: "m".into(), questions, rows: vec![row], notes }.conclusion()
    }

    #[test]
    fn intervals_by_hand() {
        let text = |right, asked| RightAnswers { right, asked }.to_text();
        // (0.75 + 0.4802 ± 1.96 · √(0.046875 + 0.060025)) / 1.9604
        assert_eq!(text(3, 4), "3/4 = 75 % (30–95)");
        // 3.8416 / (10 + 3.8416) = 0.278
        assert_eq!(text(0, 10), "0/10 = 0 % (0–28)");
        assert_eq!(text(10, 10), "10/10 = 100 % (72–100)");
        assert_eq!(text(0, 0), "n/a");
    }

    #[test]
    fn conclusion_names_the_relation_with_its_interval() {
        // 100 − √(27.8² + 27.8²) = 61
        assert_eq!(
            concluded((10, 0), (0, 10)),
            "Recall predicts right answers: a fact in the context changes their share by +100 points \
             (95 % interval +61 to +100)."
        );
        assert!(concluded((0, 10), (10, 0)).starts_with("Recall predicts wrong answers"));
        assert!(concluded((5, 5), (5, 5)).starts_with("It is open whether"));
        assert!(
            concluded((5, 5), (0, 0))
                .starts_with("No conclusion: no question is about a fact that was absent.")
        );
        assert!(concluded((0, 0), (1, 0)).contains("that was present."));
    }
}
