//! The recorder: a proxy on loopback that passes everything on and keeps requests for replies and
//! their answers.
//!
//! `route` tells what a request is for, `address` where it goes, `tee` keeps a copy of the answer
//! while it streams, `secrets` says what is kept nowhere, `file` writes the line. Bodies are kept as
//! they are; what they mean is found when the file is read (`ctxbench_scenarios::formats::exchanges`).

mod address;
mod child;
mod file;
mod proxy;
mod route;
mod secrets;
mod tee;

use std::future::{Future, IntoFuture};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use ctxbench_scenarios::formats::exchanges::Header;
use tokio::net::TcpListener;

pub use address::{AddressError, Upstream, Upstreams, variables};
pub use child::{Ended, Program, run};

use crate::serve::Clock;

/// How long answers under way may take to end once the program is gone.
const GRACE: Duration = Duration::from_secs(2);

/// A recorder that listens.
pub struct Recorder {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<proxy::Shared>,
}

/// What was recorded.
pub struct Told {
    /// Requests for replies.
    pub exchanges: u64,
    /// Why the file is not whole.
    pub failed: Option<String>,
}

/// Tells what was recorded, when everything is over.
pub struct Witness(Arc<proxy::Shared>);

impl Witness {
    /// What was recorded.
    pub fn told(&self) -> Told {
        let (exchanges, failed) = self.0.recording.told();
        Told { exchanges, failed }
    }
}

impl Recorder {
    /// Listens on loopback and begins the file, which must not be there. Requests wait until
    /// [`Recorder::run`].
    pub async fn bind(
        port: u16,
        upstreams: Upstreams,
        out: &Path,
        header: Header,
        clock: Clock,
    ) -> std::io::Result<Recorder> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let recording = file::Recording::create(out, header)?;
        let client = proxy::client();
        let number = AtomicU64::new(0);
        let shared = Arc::new(proxy::Shared { upstreams, client, recording, clock, number });
        Ok(Recorder { listener, address, shared })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Who can tell afterwards what was recorded.
    pub fn witness(&self) -> Witness {
        Witness(self.shared.clone())
    }

    /// Passes on until `until` is ready; answers under way may end within two seconds. What is not
    /// over then is recorded as left when the runtime ends.
    pub async fn run(
        self,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let app = Router::new().fallback(proxy::handle).with_state(self.shared);
        // Events are small; without this they would wait for each other.
        let listener = self.listener.tap_io(|io| drop(io.set_nodelay(true)));
        let (told, stopping) = tokio::sync::oneshot::channel();
        let until = async move {
            until.await;
            let _ = told.send(());
        };
        let late = async {
            match stopping.await {
                Ok(()) => tokio::time::sleep(GRACE).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = axum::serve(listener, app).with_graceful_shutdown(until).into_future() => ended,
            () = late => Ok(()),
        }
    }
}

/// An error with what lies under it: hyper's own words leave out why.
fn causes(e: &dyn std::error::Error) -> String {
    match e.source() {
        Some(s) => format!("{e}: {}", causes(s)),
        None => e.to_string(),
    }
}
