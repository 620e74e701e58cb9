//! Published figures that a replay cannot reproduce.

/// A publication, with the reason why it is not reproduced.
pub struct Untried {
    pub by: &'static str,
    pub link: &'static str,
    /// Claim of the publication, paraphrased.
    pub claim: &'static str,
    pub because: &'static str,
}

pub const FIGURES: &[Untried] = &[
    Untried {
        by: "Anthropic, context management",
        link: "https://www.anthropic.com/news/context-management",
        claim: "agents do 39 % better with memory tool and context editing, 29 % with editing",
        because: "it is about how well a model works; here its replies are given",
    },
    Untried {
        by: "The Complexity Trap",
        link: "https://arxiv.org/abs/2508.21433",
        claim: "masking solves as many instances as a model's summaries do, summaries make runs \
                longer, and a hybrid of both saves 7 and 11 % more",
        because: "solving and the number of turns are the model's; neither OpenHands' summaries \
                  nor the hybrid are strategies here",
    },
    Untried {
        by: "claude-code-context-profiler",
        link: "https://pypi.org/project/claude-code-context-profiler/",
        claim: "a ledger written before the compaction brings recall from 29.1 to 62.6 %",
        because: "the ledger is not a strategy here, and the twelve sessions are not published",
    },
    Untried {
        by: "Lost in Compaction",
        link: "https://arxiv.org/abs/2608.11242",
        claim: "17 % of side constraints survive a compaction",
        because: "it depends on the model that summarises, and no text of these is published with \
                  the sessions; `--summarizer URL` would ask one",
    },
    Untried {
        by: "Factory, evaluating context compression",
        link: "https://factory.ai/news/evaluating-compression",
        claim: "scores of 3.70, 3.44 and 3.35 of 5 for Factory, Anthropic and OpenAI",
        because: "a model is the judge, and neither the sessions nor its answers are published",
    },
    Untried {
        by: "Claude Code documentation, costs",
        link: "https://code.claude.com/docs/en/costs",
        claim: "agent teams use about seven times the tokens of one session in plan mode",
        because: "how work is divided among teammates is the model's, and no session of a team is \
                  published",
    },
    Untried {
        by: "Codex CLI, issue 37305",
        link: "https://github.com/openai/codex/issues/37305",
        claim: "a local compaction leaves the tools out and so pays for the whole history uncached",
        because: "its dollars are one user's session; the mechanism is in the recorded cases of \
                  Codex ([codex](systems/codex.md))",
    },
];
