//! Order of Aider's prompt and positions of its cache breakpoints (docs/sources/aider.md §1.4).

use std::sync::Arc;

use ctxbench_core::block::Block;

/// Parts of a prompt, in their order.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    /// System prompt with examples.
    pub system: Vec<Arc<Block>>,
    /// Files that may only be read.
    pub readonly_files: Vec<Arc<Block>>,
    /// Overview of the code base.
    pub repo: Vec<Arc<Block>>,
    /// Finished history: the only part that is ever summarised.
    pub done: Vec<Arc<Block>>,
    /// Files that may be edited.
    pub chat_files: Vec<Arc<Block>>,
    /// Turns since the last edit, and rules repeated at the end.
    pub cur: Vec<Arc<Block>>,
}

impl Chunks {
    fn before_cur(&self) -> [&Vec<Arc<Block>>; 5] {
        [&self.system, &self.readonly_files, &self.repo, &self.done, &self.chat_files]
    }

    /// Returns all blocks in the order of the prompt.
    pub fn all(&self) -> Vec<Arc<Block>> {
        self.before_cur().into_iter().chain([&self.cur]).flatten().cloned().collect()
    }

    /// Returns the number of blocks before the current turns.
    pub fn len_before_cur(&self) -> usize {
        self.before_cur().iter().map(|p| p.len()).sum()
    }

    /// Returns the positions of the blocks that are followed by a cache breakpoint: the end of the
    /// system prompt, of the repository map (or of the read-only files without a map), and of the
    /// editable files. The history lies between the second and the third breakpoint.
    pub fn breakpoints(&self) -> Vec<usize> {
        let [system, readonly, repo, done, files] = self.before_cur().map(Vec::len);
        let readonly = readonly + repo;
        let parts = [(system, system), (readonly, readonly), (done + files, files)];
        let mut end = 0;
        let ends = parts.into_iter().map(|(len, marked)| {
            end += len;
            (marked > 0).then(|| end - 1)
        });
        ends.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block;
    use ctxbench_core::block::BlockKind;

    #[test]
    fn every_combination_of_empty_parts_follows_the_three_rules() {
        // docs/sources/aider.md §1.4: after the system prompt; after the map or else the read-only
        // files; after the editable files. Never after history or current turns.
        let names = ["SYS", "ro", "repo", "done", "files", "cur"];
        for mask in 0..1_u32 << names.len() {
            let there =
                |name: &str| mask >> names.iter().position(|n| *n == name).unwrap() & 1 == 1;
            let part = |name: &str| match there(name) {
                true => vec![block(BlockKind::User, 0, "first"), block(BlockKind::User, 0, name)],
                false => vec![],
            };
            let [system, readonly_files, repo, done, chat_files, cur] = names.map(part);
            let c = Chunks { system, readonly_files, repo, done, chat_files, cur };
            let map = if there("repo") { "repo" } else { "ro" };
            let expected = ["SYS", map, "files"].into_iter().filter(|name| there(name));
            let all = c.all();
            let marked = c.breakpoints().into_iter().map(|i| all[i].text.to_string());
            assert!(marked.eq(expected), "{mask:06b}");
        }
    }
}
