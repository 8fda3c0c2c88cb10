//! Every dependency comes from crates.io, for everybody: no other registry, no mirror, no git.

use super::Problem;
use crate::repo::Tree;

const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// The lock file is committed and names no other source, and no cargo configuration sets one.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    match tree.text("Cargo.lock") {
        None => problems.push(Problem::in_file("Cargo.lock", "must be committed")),
        Some(lock) => {
            for (number, line) in (1..).zip(lock.lines()) {
                if line.starts_with("source = ") && line != CRATES_IO {
                    let what = format!("must come from crates.io: {line}");
                    problems.push(Problem::at("Cargo.lock", number, what));
                }
            }
        }
    }
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".cargo/config.toml")) {
        for (number, line) in (1..).zip(text.lines()) {
            if ["[source", "[registr", "[net", "[http"].iter().any(|table| line.starts_with(table))
            {
                problems.push(Problem::at(path, number, "must not choose where crates come from"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_io_alone_is_right() {
        let lock = format!("[[package]]\nname = \"a\"\n{CRATES_IO}\n");
        let config = "[alias]\nxtask = \"run --package xtask --\"\n";
        assert_eq!(check(&Tree::of(&[("Cargo.lock", &lock), (".cargo/config.toml", config)])), []);
    }

    #[test]
    fn other_sources_are_found() {
        let lock =
            "source = \"registry+https://mirror.example/index\"\nsource = \"git+https://x\"\n";
        let config = "[alias]\n[source.crates-io]\nreplace-with = \"mirror\"\n";
        let tree = Tree::of(&[("Cargo.lock", lock), (".cargo/config.toml", config)]);
        let places: Vec<_> = check(&tree).into_iter().map(|p| (p.path, p.line)).collect();
        assert_eq!(
            places,
            [
                ("Cargo.lock".to_owned(), Some(1)),
                ("Cargo.lock".to_owned(), Some(2)),
                (".cargo/config.toml".to_owned(), Some(2))
            ]
        );
        assert_eq!(check(&Tree::of(&[]))[0].to_string(), "Cargo.lock: must be committed");
    }
}
