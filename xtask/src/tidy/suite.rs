//! The suite's paper trail: every rule and fault has its case, and `docs/conformance.md` says so.

use super::Problem;
use crate::repo::Tree;
use crate::suite::{CASES, DOCUMENT, FAULTS, MODEL, SABOTEURS, Suite, check as find, render};

/// The trail is whole, the tests that it names exist, and the document is what it makes.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let text = |path| tree.text(path).unwrap_or_default();
    let cases = tree.texts().filter(|(path, _)| path.starts_with(CASES)).map(|(_, text)| text);
    let suite = Suite::read(text(MODEL), text(FAULTS), cases, text(SABOTEURS));
    let mut problems = Vec::new();
    for (path, line, what) in find(&suite) {
        problems.push(Problem { path: path.to_owned(), line, what });
    }
    for rule in &suite.rules {
        for (package, test) in
            rule.own_tests().filter(|(package, test)| !exists(tree, package, test))
        {
            let what = format!("{} names {package}::{test}, which is no test", rule.id);
            problems.push(Problem::at(rule.place.0, rule.place.1, what));
        }
    }
    if tree.text(DOCUMENT) != Some(render(&suite).as_str()) {
        let what = "must be what `cargo xtask conformance --report` writes";
        problems.push(Problem::in_file(DOCUMENT, what));
    }
    problems
}

/// Whether the package has a test of this name.
fn exists(tree: &Tree, package: &str, test: &str) -> bool {
    // The tests of what takes servers stand beside the suite that starts them.
    let folder = match package {
        "a2-conformance" => "conformance/".to_owned(),
        package => format!("crates/{package}/"),
    };
    let function = format!("fn {test}(");
    tree.with_extension("rs").filter(|(path, _)| path.starts_with(&folder)).any(|(_, text)| {
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        lines.iter().enumerate().any(|(at, line)| {
            let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
            line.contains(&function) && attributes.any(|line| line.contains("test"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL_TEXT: (&str, &str) = (MODEL, "- **R1** One.\n");
    const FAULTS_TEXT: (&str, &str) = (FAULTS, "- **F1** One. Own test: `a2-x::one`.\n");
    const CASES_TEXT: (&str, &str) =
        ("conformance/src/cases/a.rs", "\ncases![\n    \"a.one\" => one: rules(R1);\n];\n");
    const SABOTEURS_TEXT: (&str, &str) =
        (SABOTEURS, "\nsaboteurs! {\n    S breaks R1: \"it\" => \"a.one\";\n}\n");
    const TEST: (&str, &str) =
        ("crates/a2-x/tests/files.rs", "#[tokio::test]\n#[ignore]\nasync fn one() {}\n");

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    fn page() -> String {
        render(&Suite::read(MODEL_TEXT.1, FAULTS_TEXT.1, [CASES_TEXT.1], SABOTEURS_TEXT.1))
    }

    #[test]
    fn a_whole_trail_is_right() {
        let files = [MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, SABOTEURS_TEXT, TEST];
        assert_eq!(said(&[&files[..], &[(DOCUMENT, &page())]].concat()), [""; 0]);
    }

    #[test]
    fn a_document_that_differs_is_found() {
        let files = [MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, SABOTEURS_TEXT, TEST];
        let rule = "docs/conformance.md: must be what `cargo xtask conformance --report` writes";
        assert_eq!(said(&files), [rule]);
        let other = format!("{}\n", page());
        assert_eq!(said(&[&files[..], &[(DOCUMENT, &other)]].concat()), [rule]);
    }

    #[test]
    fn what_breaks_the_trail_is_found() {
        let page = page();
        let whole = (DOCUMENT, page.as_str());
        let other =
            ("conformance/src/cases/a.rs", "\ncases![\n    \"a.one\" => one: rules(R2);\n];\n");
        let found = said(&[MODEL_TEXT, FAULTS_TEXT, other, SABOTEURS_TEXT, TEST, whole]);
        for expected in [
            "docs/model.md:1: R1 has no case",
            "conformance/src/cases/: the case a.one names R2, which does not exist",
            "conformance/src/saboteurs/mod.rs: S breaks R1, which a.one does not name",
        ] {
            assert!(found.iter().any(|line| line == expected), "{expected} in {found:?}");
        }
    }

    #[test]
    fn an_own_test_that_does_not_exist_is_found() {
        let page = page();
        let whole = (DOCUMENT, page.as_str());
        let rule = "docs/faults.md:1: F1 names a2-x::one, which is no test";
        for no_test in [
            ("crates/a2-x/tests/files.rs", "async fn one() {}\n"),
            ("crates/a2-x/tests/files.rs", "#[test]\nfn one_more() {}\n"),
            ("crates/a2-y/tests/files.rs", "#[test]\nfn one() {}\n"),
        ] {
            let found =
                said(&[MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, SABOTEURS_TEXT, whole, no_test]);
            assert_eq!(found, [rule]);
        }
    }
}
