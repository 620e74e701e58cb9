//! Services of the system that the rooms of the harness share: groups of processes, signals and
//! scratch folders, HTTP on loopback, and the removal of secrets.

pub mod accept;
#[cfg_attr(not(target_os = "linux"), path = "no_loopback.rs")]
pub mod loopback;
pub mod post;
mod process_group;
pub mod redact;
pub mod server_url;
pub mod shutdown;
mod signals;

pub use process_group::{PipedProcess, ProcessGroup};
pub use signals::Signals;

/// Runs a future to its end, on a runtime of its own.
pub fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}
