//! Access control: only programs of this machine are served. A page in a browser can reach
//! loopback, too, under another name or from another origin, and could advance a script, read the
//! client's requests, or use its keys.

use axum::http::{HeaderMap, header};
use ctxbench_os::server_url::is_loopback;

/// Returns why the origin of a request is refused; `None` = it is accepted.
pub(crate) fn foreign(headers: &HeaderMap) -> Option<String> {
    let value = |name| headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()));
    if let Some(host) = value(header::HOST).filter(|h| !is_loopback(h)) {
        return Some(format!("the host {host:?} is not this machine's loopback"));
    }
    let origin = value(header::ORIGIN)?;
    let host = origin.split_once("://").map(|(_, host)| host);
    let own = host.is_some_and(is_loopback);
    (!own).then(|| format!("requests of pages from {origin:?} are refused"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: header::HeaderName, value: &str) -> bool {
        foreign(&HeaderMap::from_iter([(name, value.parse().unwrap())])).is_some()
    }

    #[test]
    fn loopback_has_many_names_and_others_have_none_of_them() {
        for own in
            ["127.0.0.1:8080", "localhost", "LOCALHOST.:1", "[::1]:9", "127.9.9.9", "a.localhost"]
        {
            assert!(!refused(header::HOST, own), "{own}");
        }
        for other in
            ["example.com", "127.0.0.1.example.com", "localhost.example", "10.0.0.1", "[::2]", ""]
        {
            assert!(refused(header::HOST, other), "{other}");
        }
        assert!(foreign(&HeaderMap::new()).is_none());
    }

    #[test]
    fn pages_of_others_are_refused() {
        for own in ["http://localhost:3000", "https://127.0.0.1"] {
            assert!(!refused(header::ORIGIN, own), "{own}");
        }
        for other in ["https://example.com", "null", "http://localhost.example.com", "file://"] {
            assert!(refused(header::ORIGIN, other), "{other}");
        }
    }
}
