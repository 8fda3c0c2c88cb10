//! Symbolic links: a crate reaches its SQL folder by a committed link, so that packing it carries
//! the files, and no link leads out of the repository.

use super::Problem;
use crate::repo::{Tree, resolve};

/// Every link resolves to something tracked, and every folder of `sql/` has its crate's link.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, target) in tree.links() {
        match resolve(path, target) {
            None => problems.push(Problem::in_file(path, format!("leads out: {target}"))),
            Some(end) if !tree.exists(&end) => {
                problems.push(Problem::in_file(path, format!("leads nowhere: {target}")));
            }
            Some(_) => {}
        }
    }
    for backend in tree.folders_in("sql") {
        let path = format!("crates/a2-store-{backend}/sql");
        let target = format!("../../sql/{backend}");
        if !tree.links().any(|link| link == (path.as_str(), target.as_str())) {
            let what = format!("must be a symbolic link to {target}, committed as one");
            problems.push(Problem::in_file(&path, what));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::of(&[("sql/sqlite/schema.sql", "-- The schema.")])
    }

    #[test]
    fn a_committed_link_to_the_folder_is_right() {
        let tree = tree().and_link("crates/a2-store-sqlite/sql", "../../sql/sqlite");
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn a_missing_or_copied_folder_is_found() {
        let rule = "crates/a2-store-sqlite/sql: must be a symbolic link to ../../sql/sqlite, \
                    committed as one";
        assert_eq!(check(&tree())[0].to_string(), rule);
        let copy = ("crates/a2-store-sqlite/sql/schema.sql", "-- The schema.");
        let copied = Tree::of(&[("sql/sqlite/schema.sql", "-- The schema."), copy]);
        assert_eq!(check(&copied)[0].to_string(), rule);
    }

    #[test]
    fn a_link_that_leads_out_or_nowhere_is_found() {
        let tree = Tree::of(&[("a/b", "")])
            .and_link("a/out", "../../x")
            .and_link("a/root", "/etc")
            .and_link("a/gone", "c");
        let said: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["a/gone: leads nowhere: c", "a/out: leads out: ../../x", "a/root: leads out: /etc"]
        );
    }
}
