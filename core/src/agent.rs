//! The agent's loop, shared by all strategies, replays and embedding programs.

use crate::engine::Engine;
use crate::host::{Action, Event, Incoming, RewindMode, RewindStatus};
use crate::request::{ErrorKind, ModelError};
use crate::strategy::{Flow, ReplyFlow, Strategy, Unsupported};

/// Maximum number of `Again` answers of `before_request` in a row.
const MAX_RETHINKS: u32 = 16;

/// Runs a session to its end.
pub async fn run(s: &mut Engine, strategy: &mut dyn Strategy) {
    session(s, strategy).await;
    strategy.on_end(s).await;
}

async fn session(s: &mut Engine, strategy: &mut dyn Strategy) {
    strategy.on_start(s).await;
    while let Some(action) = next(s, strategy).await {
        match action {
            Action::User(msg) => {
                if turn(s, strategy, &msg).await == SessionState::Ended {
                    return;
                }
            }
            Action::Compact { instructions } => {
                // A product without the command continues.
                if let Err(Unsupported) = strategy.compact(s, instructions.as_deref()).await {
                    s.note(Event::NoManualCompaction);
                }
            }
            Action::Restart => {
                s.note(Event::Restart { shown: s.context.blocks().to_vec() });
                strategy.on_restart(s).await;
                s.note(Event::Reopened { shown: s.context.blocks().to_vec() });
            }
            Action::Idle { ms } => strategy.on_idle(s, ms).await,
            Action::Rewind { to, mode, instructions } => {
                let before = s.context.blocks().to_vec();
                let status = rewind(s, strategy, &to, mode, instructions.as_deref()).await;
                let after = s.context.blocks().to_vec();
                s.note(Event::Rewound { to, mode, status, before, after });
            }
            Action::Clear => {
                // An empty view separates nothing.
                let _ = s.set_view(Vec::new());
                strategy.on_start(s).await;
            }
            Action::NewSession => {
                strategy.on_new_session(s).await;
                s.note(Event::NewSession { shown: s.context.blocks().to_vec() });
            }
        }
    }
}

/// Rewinds the conversation. The host rewinds files, so a rewind of files alone does nothing here.
async fn rewind(
    s: &mut Engine,
    strategy: &mut dyn Strategy,
    to: &str,
    mode: RewindMode,
    instructions: Option<&str>,
) -> RewindStatus {
    if mode == RewindMode::Code {
        return RewindStatus::Done;
    }
    let Some(id) = s.message(to) else { return RewindStatus::Failed };
    if mode.restores_conversation() {
        strategy.on_rewind(s, id).await;
        return RewindStatus::Done;
    }
    match strategy.summarise_at(s, id, mode, instructions).await {
        Ok(true) => RewindStatus::Done,
        Ok(false) => RewindStatus::Failed,
        Err(Unsupported) => RewindStatus::Unsupported,
    }
}

/// Returns the next action, after waking the strategy at the times that it requests.
async fn next(s: &mut Engine, strategy: &mut dyn Strategy) -> Option<Action> {
    while let Some(at) = strategy.wakes_at() {
        if !s.host().wait_until(at).await {
            break;
        }
        strategy.on_wake(s).await;
        // Asking for the same time again would never let time pass.
        if strategy.wakes_at().is_some_and(|next| next <= at) {
            break;
        }
    }
    s.host().next().await
}

#[derive(PartialEq, Eq)]
enum SessionState {
    Open,
    /// The script of the model has no further reply.
    Ended,
}

/// Runs one turn: from a user message to the last reply before the next.
async fn turn(s: &mut Engine, strategy: &mut dyn Strategy, msg: &Incoming) -> SessionState {
    match strategy.on_user(s, msg).await {
        Flow::FailTurn(reason) => return failed(s, &reason),
        Flow::EndTurn => return SessionState::Open,
        _ => {}
    }
    s.record_user(strategy, msg);
    s.notify_view(&msg.key);
    let mut attempt = 0;
    let mut rethinks = 0;
    loop {
        match strategy.before_request(s).await {
            Flow::Again if rethinks < MAX_RETHINKS => {
                rethinks += 1;
                continue;
            }
            Flow::FailTurn(reason) => return failed(s, &reason),
            Flow::EndTurn => break,
            _ => rethinks = 0,
        }
        let request = strategy.request(s);
        let reply = match s.send(&request).await {
            Ok(reply) => reply,
            Err(ModelError { kind: ErrorKind::SessionEnd, .. }) => return SessionState::Ended,
            Err(e) => {
                attempt += 1;
                match strategy.on_error(s, &e, attempt).await {
                    Flow::FailTurn(reason) => return failed(s, &reason),
                    Flow::EndTurn => break,
                    _ => continue,
                }
            }
        };
        attempt = 0;
        match strategy.on_reply(s, &reply).await {
            ReplyFlow::DropReply => continue,
            ReplyFlow::FailTurn(reason) => return failed(s, &reason),
            ReplyFlow::EndTurn => {
                s.record_reply(strategy, &reply);
                break;
            }
            ReplyFlow::Resume => {
                s.record_reply(strategy, &reply);
                continue;
            }
            ReplyFlow::Proceed => {}
        }
        let calls = s.record_reply(strategy, &reply);
        s.notify_view("");
        if !calls.is_empty() {
            let results = s.host().run(&calls).await;
            if !s.record_results(strategy, results).await {
                s.note(Event::ToolKilled);
                return SessionState::Open;
            }
            s.notify_view(&calls[calls.len() - 1].id);
        }
        match strategy.after_step(s, !calls.is_empty()).await {
            Flow::Again => {}
            Flow::EndTurn => break,
            Flow::FailTurn(reason) => return failed(s, &reason),
            _ if !calls.is_empty() && s.host().turn_continues() => {}
            _ => break,
        }
    }
    strategy.after_turn(s).await;
    // `after_turn` may have changed the view.
    s.notify_view("");
    SessionState::Open
}

fn failed(s: &mut Engine, reason: &str) -> SessionState {
    s.note(Event::TurnFailed(reason.to_string()));
    s.host().turn_failed(reason);
    SessionState::Open
}
