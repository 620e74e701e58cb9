//! Recordings of versions of programs that the strategies do not follow.

use std::collections::BTreeMap;

use ctxbench_scenarios::Scenario;
use ctxbench_strategies::all;
use ctxbench_util::plural::pluralize;

/// Returns notes on sessions of versions that the default version of their program's strategy does not
/// follow, which may compact at other points.
pub fn notes(sessions: &[Scenario]) -> Vec<String> {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for s in sessions {
        let source = s.session.header.source.as_ref();
        if let Some((program, version)) =
            source.and_then(|f| Some((&f.format, f.version.as_ref()?)))
        {
            found.entry((program, version)).or_default().push(&s.id);
        }
    }
    let note = |((program, version), ids): ((&str, &str), Vec<&str>)| {
        let product = all().find(|d| d.name == program)?;
        let (default, own) = (product.versions[0].name, product.following(version));
        if own.is_some_and(|own| own.name == default) {
            return None;
        }
        let recorded = match ids.as_slice() {
            [id] => format!("{id} was"),
            ids => format!("{} were", pluralize(ids.len(), "session")),
        };
        let recorded = format!("{recorded} recorded by {program} {version}");
        let follows = format!("{program} follows {default}");
        Some(match own {
            Some(own) => format!("{recorded}: {program}@{} follows that, {follows}", own.name),
            None => format!("{recorded}, {follows}: compactions can come at other points"),
        })
    };
    found.into_iter().filter_map(note).collect()
}
