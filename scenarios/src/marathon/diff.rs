//! Line diff in the unified format.

use std::fmt::Write;

const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Keep,
    Add,
    Remove,
}

/// Returns the diff text and the numbers of added and removed lines.
pub fn unified(path: &str, old: &str, new: &str) -> (String, usize, usize) {
    let a: Vec<&str> = old.lines().collect();
    let b: Vec<&str> = new.lines().collect();
    let ops = script(&a, &b);
    let added = ops.iter().filter(|(op, _)| *op == Op::Add).count();
    let removed = ops.iter().filter(|(op, _)| *op == Op::Remove).count();
    let from = if old.is_empty() { "/dev/null".to_owned() } else { format!("a/{path}") };
    let mut out = format!("diff --git a/{path} b/{path}\n--- {from}\n+++ b/{path}\n");
    for (start, end) in hunks(&ops) {
        write_hunk(&mut out, &ops, start, end);
    }
    (out, added, removed)
}

fn write_hunk(out: &mut String, ops: &[(Op, &str)], start: usize, end: usize) {
    let old_before = ops[..start].iter().filter(|(op, _)| *op != Op::Add).count();
    let new_before = ops[..start].iter().filter(|(op, _)| *op != Op::Remove).count();
    let old_len = ops[start..end].iter().filter(|(op, _)| *op != Op::Add).count();
    let new_len = ops[start..end].iter().filter(|(op, _)| *op != Op::Remove).count();
    let old_at = old_before + usize::from(old_len > 0);
    let new_at = new_before + usize::from(new_len > 0);
    let _ = writeln!(out, "@@ -{old_at},{old_len} +{new_at},{new_len} @@");
    for (op, line) in &ops[start..end] {
        let mark = match op {
            Op::Keep => ' ',
            Op::Add => '+',
            Op::Remove => '-',
        };
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// Ranges of operations around the changes; near changes share one range.
fn hunks(ops: &[(Op, &str)]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, (op, _)) in ops.iter().enumerate() {
        if *op == Op::Keep {
            continue;
        }
        let start = index.saturating_sub(CONTEXT);
        let end = (index + CONTEXT + 1).min(ops.len());
        match found.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => found.push((start, end)),
        }
    }
    found
}

/// Longest common subsequence; equal ends are cut first because edits are small.
fn script<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(Op, &'a str)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let most = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x == y).count();
    let (left, right) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let width = right.len() + 1;
    let mut table = vec![0_u32; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            table[i * width + j] = if left[i] == right[j] {
                table[(i + 1) * width + j + 1] + 1
            } else {
                table[(i + 1) * width + j].max(table[i * width + j + 1])
            };
        }
    }
    let mut ops: Vec<(Op, &str)> = a[..head].iter().map(|line| (Op::Keep, *line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            ops.push((Op::Keep, left[i]));
            i += 1;
            j += 1;
        } else if j == right.len()
            || (i < left.len() && table[(i + 1) * width + j] >= table[i * width + j + 1])
        {
            ops.push((Op::Remove, left[i]));
            i += 1;
        } else {
            ops.push((Op::Add, right[j]));
            j += 1;
        }
    }
    ops.extend(a[a.len() - tail..].iter().map(|line| (Op::Keep, *line)));
    ops
}
