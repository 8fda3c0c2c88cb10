//! A file says what it is for before it says anything else: Rust modules, SQL and Lua files.

use super::Problem;
use crate::repo::Tree;

const HEADERS: [(&str, &str, &str); 3] = [
    ("rs", "//! ", "must begin with `//!`: what the module is for and why it is so"),
    ("sql", "-- ", "must begin with a comment: what it does, its parameters, what it answers"),
    ("lua", "-- ", "must begin with a comment: what it does, KEYS, ARGV, what it returns"),
];

/// Every file of these kinds begins with a comment that says something.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (extension, opening, rule) in HEADERS {
        for (path, text) in tree.with_extension(extension) {
            let first = text.lines().next().unwrap_or_default();
            let says = first.strip_prefix(opening).unwrap_or_default().trim();
            // Shorter than this it is a placeholder.
            if says.len() < 5 {
                problems.push(Problem::at(path, 1, rule));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_needed() {
        let good = Tree::of(&[
            ("a.rs", "//! What the module is for.\n"),
            ("a.sql", "-- Inserts one event.\ninsert …"),
            ("a.lua", "-- Appends a batch.\n"),
            ("a.md", "no header\n"),
        ]);
        assert_eq!(check(&good), []);
        let bad = Tree::of(&[
            ("a.rs", "use std::fmt;\n//! Too late.\n"),
            ("b.rs", ""),
            ("c.rs", "//! x\n"),
            ("a.sql", "insert into a2_events\n-- Too late, too.\n"),
            ("a.lua", "return 1"),
        ]);
        let paths: Vec<_> = check(&bad).into_iter().map(|p| p.path).collect();
        assert_eq!(paths, ["a.rs", "b.rs", "c.rs", "a.sql", "a.lua"]);
    }
}
