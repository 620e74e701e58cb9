//! Order of Aider's prompt and positions of its cache breakpoints (docs/sources/aider.md §1.4).

/// Parts of a prompt. The caller chooses the item type, such as blocks or messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks<T> {
    pub system: Vec<T>,
    pub examples: Vec<T>,
    /// Files that may only be read.
    pub readonly_files: Vec<T>,
    /// Overview of the code base.
    pub repo: Vec<T>,
    /// Finished history: the only part that is ever summarised.
    pub done: Vec<T>,
    /// Files that may be edited.
    pub chat_files: Vec<T>,
    /// Turns since the last edit.
    pub cur: Vec<T>,
    /// Rules repeated at the end.
    pub reminder: Vec<T>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks {
            system: Vec::new(),
            examples: Vec::new(),
            readonly_files: Vec::new(),
            repo: Vec::new(),
            done: Vec::new(),
            chat_files: Vec::new(),
            cur: Vec::new(),
            reminder: Vec::new(),
        }
    }
}

impl<T: Clone> Chunks<T> {
    fn parts(&self) -> [&Vec<T>; 8] {
        [
            &self.system,
            &self.examples,
            &self.readonly_files,
            &self.repo,
            &self.done,
            &self.chat_files,
            &self.cur,
            &self.reminder,
        ]
    }

    /// Returns all items in the order of the prompt.
    pub fn all(&self) -> Vec<T> {
        self.parts().into_iter().flatten().cloned().collect()
    }

    /// Returns the number of items before the current turns.
    pub fn before_cur(&self) -> usize {
        self.parts()[..6].iter().map(|p| p.len()).sum()
    }

    /// Returns the positions of the items that are followed by a cache breakpoint: the last example
    /// (or the last item of the system prompt without examples), the repository map (or the last
    /// read-only file without a map), and the last editable file. The history lies between the
    /// second and the third breakpoint.
    pub fn breakpoints(&self) -> Vec<usize> {
        let end = |part: usize| self.parts()[..=part].iter().map(|p| p.len()).sum::<usize>();
        let last = |part: usize| (!self.parts()[part].is_empty()).then(|| end(part) - 1);
        let marks = [last(1).or_else(|| last(0)), last(3).or_else(|| last(2)), last(5)];
        marks.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Chunks<&'static str> {
        Chunks {
            system: vec!["SYS"],
            examples: vec!["ex u", "ex a"],
            readonly_files: vec!["ro", "ok ro"],
            repo: vec!["repo", "ok repo"],
            done: vec!["d u", "d a"],
            chat_files: vec!["files", "ok files"],
            cur: vec!["now"],
            reminder: vec!["REMINDER"],
        }
    }

    #[test]
    fn every_combination_of_empty_parts_follows_the_three_rules() {
        // docs/sources/aider.md §1.4: after the examples or else the system prompt; after the map
        // or else the read-only files; after the editable files. Never after history, current turns
        // or reminder.
        for mask in 0..256_u32 {
            let keep = |bit: u32, part: Vec<&'static str>| {
                if mask >> bit & 1 == 1 { part } else { vec![] }
            };
            let f = full();
            let c = Chunks {
                system: keep(0, f.system),
                examples: keep(1, f.examples),
                readonly_files: keep(2, f.readonly_files),
                repo: keep(3, f.repo),
                done: keep(4, f.done),
                chat_files: keep(5, f.chat_files),
                cur: keep(6, f.cur),
                reminder: keep(7, f.reminder),
            };
            let there = |bit: u32| mask >> bit & 1 == 1;
            let first = if there(1) { Some("ex a") } else { there(0).then_some("SYS") };
            let second = if there(3) { Some("ok repo") } else { there(2).then_some("ok ro") };
            let expected: Vec<_> =
                [first, second, there(5).then_some("ok files")].into_iter().flatten().collect();
            let all = c.all();
            let marked: Vec<_> = c.breakpoints().iter().map(|&i| all[i]).collect();
            assert_eq!(marked, expected, "{mask:08b}");
        }
    }
}
