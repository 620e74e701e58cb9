//! The recorder: a proxy on loopback that passes everything on and keeps requests for replies and
//! their answers.
//!
//! `route` tells what a request is for, `address` where it goes, `tee` keeps a copy of the answer
//! while it streams, `file` writes the line. Bodies are kept as
//! they are; what they mean is found when the file is read (`ctxbench_scenarios::formats::exchanges`).

mod address;
mod child;
mod file;
mod proxy;
mod route;
mod tee;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use ctxbench_scenarios::formats::exchanges::Header;
use tokio::net::TcpListener;

pub use address::{AddressError, Upstream, Upstreams, variables};
pub use child::{Ended, Program, run};

use crate::accept::listen;
use crate::serve::Clock;

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
    pub async fn run(self, until: impl Future<Output = ()> + Send) {
        let shared = self.shared;
        let answer = move |request| proxy::handle(State(shared.clone()), request);
        listen(self.listener, answer, until).await;
    }
}
