//! The example of an embedded engine, with the model server: its store, its checkpoints and its
//! background compaction.

#[path = "../../../core/kit/examples/agent/main.rs"]
#[allow(dead_code)]
pub mod agent;

use std::sync::Arc;

use ctxbench_agents::serve::{ServeOptions, Server};
use ctxbench_core::{Block, BlockKind, Part};
use ctxbench_kit::checkpoint::{EditCheckpoints, Snapshots};
use ctxbench_kit::store::Store;

/// Runs the example in a folder against its own server, and returns the final context.
pub fn conversation(folder: &std::path::Path, prompts: Vec<String>) -> Vec<Arc<Block>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::bind(ServeOptions::default()).await.unwrap();
        let address = format!("http://{}", server.address());
        tokio::spawn(server.run(std::future::pending()));
        agent::converse(&address, folder, prompts).await.unwrap()
    })
}

#[test]
fn the_example_writes_compacts_stores_and_can_go_back() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "before").unwrap();
    let long = format!("Remember this: {}", "the port is 8443; ".repeat(30));
    let prompts = vec![
        long.clone(),
        "call write {\"path\":\"a.txt\",\"text\":\"after\"}".into(),
        "two".into(),
        "three".into(),
        "four".into(),
    ];
    let shown = conversation(folder.path(), prompts);
    // The summary replaced its range, and later messages are unchanged.
    assert_eq!(shown.iter().filter(|b| b.kind == BlockKind::Summary).count(), 1, "{shown:?}");
    assert!(shown.iter().all(|b| *b.text != *long) && shown.last().unwrap().text.contains("four"));
    // The store has all messages, regardless of the context.
    let store = Store::open(folder.path().join(".agent/sessions.db")).unwrap();
    let session = store.sessions().unwrap().remove(0).id;
    let log = store.log(session).unwrap();
    let texts: Vec<&str> =
        log.iter().flat_map(|m| &m.parts).filter_map(|p| p.content.as_text()).collect();
    assert!(texts.contains(&long.as_str()) && texts.contains(&"four"));
    // A reopened session begins with the summary and has the later messages.
    let context = store.load_context(session).unwrap();
    let first = &context[0].parts;
    assert!(
        first.iter().any(|p| matches!(p.content, Part::Summary(_)))
            && !format!("{context:?}").contains(long.as_str()),
        "{first:?}"
    );
    assert!(format!("{:?}", context.last().unwrap().parts).contains("four"));
    // The file has its content from before the second prompt.
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "after");
    let mut files = EditCheckpoints::open(folder.path(), &folder.path().join(".agent")).unwrap();
    files.restore(2, 0).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "before");
}

#[test]
fn the_next_session_in_a_folder_is_told_what_the_one_before_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let context = |shown: Vec<Arc<Block>>| -> Vec<String> {
        let told = shown.iter().filter(|b| b.kind == BlockKind::Context);
        told.map(|b| b.text.to_string()).collect()
    };
    let long = format!("Remember this: {}", "the port is 8443; ".repeat(30));
    let prompts = vec![long, "two".into(), "three".into(), "four".into()];
    assert!(context(conversation(folder.path(), prompts)).is_empty(), "nothing came before");
    let told = context(conversation(folder.path(), vec!["where were we?".into()]));
    let store = Store::open(folder.path().join(".agent/sessions.db")).unwrap();
    let [first, second] = [0, 1].map(|i| store.sessions().unwrap()[i].clone());
    assert_eq!(second.details.parent, Some(first.id));
    let (whose, summary) = store.inherited_summary(second.id).unwrap().unwrap();
    assert_eq!(whose, first.id);
    assert!(told.len() == 1 && told[0].ends_with(&summary), "{told:?}");
}
