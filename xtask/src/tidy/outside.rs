//! The repository stands alone: nothing in it points to a place on somebody's machine, or above it.

use super::Problem;
use crate::repo::{Tree, resolve};

/// Beginnings of paths on a machine. In two parts, so that this file is not found by its own rule.
const PLACES: [&str; 7] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("C:", "\\Users"),
    concat!("../sh", "ared"),
];

/// No line names a place on a machine, and no path dependency leads out.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(place) = PLACES.iter().find(|place| names(line, place)) {
                problems.push(Problem::at(path, number, format!("points outside: {place}")));
            }
            if path.ends_with("Cargo.toml")
                && let Some(target) = path_of(line)
                && resolve(path, target).is_none_or(|end| !tree.exists(&end))
            {
                problems.push(Problem::at(path, number, format!("points outside: {target}")));
            }
        }
    }
    problems
}

/// Whether `line` holds `place` as the beginning of a path: not in the middle of a longer one.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'))
    })
}

/// The value of `path = "…"` in a line of a manifest.
fn path_of(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("path = \"")?;
    let is_key = before.is_empty() || before.ends_with([' ', '{', ',']);
    is_key.then(|| after.split('"').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_within_the_repository_and_the_web_are_fine() {
        let url = format!("see https://example.org{}x\n", PLACES[1]);
        let tree = Tree::of(&[
            ("README.md", &url),
            ("crates/a/Cargo.toml", "[dependencies]\nb = { path = \"../b\" }\n"),
            ("crates/b/Cargo.toml", "[[bin]]\npath = \"main.rs\"\n"),
            ("crates/b/main.rs", "//! Reads `../x` and `/etc/hosts`.\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn places_on_a_machine_are_found() {
        for place in PLACES {
            let text = format!("fine\nread {place}x\n");
            let tree = Tree::of(&[("docs/a.md", &text)]);
            let expected = format!("docs/a.md:2: points outside: {place}");
            assert_eq!(check(&tree)[0].to_string(), expected);
        }
    }

    #[test]
    fn a_path_dependency_that_leads_out_is_found() {
        let tree =
            Tree::of(&[("a/Cargo.toml", "b = { path = \"../../b\" }\nc = { path = \"c\" }")]);
        let said: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["a/Cargo.toml:1: points outside: ../../b", "a/Cargo.toml:2: points outside: c"]
        );
    }
}
