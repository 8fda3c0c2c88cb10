//! That nothing is left out: every rule has a case, every case a rule, every saboteur is caught by a
//! case that names its rule.

use std::collections::BTreeSet;

use super::{CASES, FAULTS, MODEL, SABOTEURS, Suite};

/// Where something is wrong: the path, the line if it is known, and what.
pub(crate) type Finding = (&'static str, Option<usize>, String);

/// All that is wrong.
pub(crate) fn check(suite: &Suite) -> Vec<Finding> {
    let mut findings = Vec::new();
    numbers(suite, &mut findings);
    let known: BTreeSet<&str> = suite.rules.iter().map(|rule| rule.id.as_str()).collect();
    for rule in &suite.rules {
        let covered = suite.cases_of(&rule.id).next().is_some()
            || rule.waits()
            || (rule.place.0 == FAULTS && rule.own_tests().next().is_some());
        if !covered {
            let what = format!("{} has no case", rule.id);
            findings.push((rule.place.0, Some(rule.place.1), what));
        }
    }
    let mut earlier = None;
    for case in &suite.cases {
        let mut wrong = |what: String| findings.push((CASES, None, what));
        if earlier == Some(&case.name) {
            wrong(format!("the case {} stands twice", case.name));
        }
        earlier = Some(&case.name);
        if case.rules.is_empty() {
            wrong(format!("the case {} names no rule", case.name));
        }
        for rule in case.rules.iter().filter(|rule| !known.contains(rule.as_str())) {
            wrong(format!("the case {} names {rule}, which does not exist", case.name));
        }
    }
    for saboteur in &suite.saboteurs {
        let mut wrong = |what: String| findings.push((SABOTEURS, None, what));
        let super::Saboteur { name, rule, caught_by, .. } = saboteur;
        if !known.contains(rule.as_str()) {
            wrong(format!("{name} breaks {rule}, which does not exist"));
        }
        match suite.case(caught_by) {
            None => wrong(format!("{name} is caught by {caught_by}, which does not exist")),
            Some(case) if !case.rules.contains(rule) => {
                wrong(format!("{name} breaks {rule}, which {caught_by} does not name"));
            }
            Some(_) => {}
        }
    }
    findings
}

/// The items are numbered from 1 without a gap.
fn numbers(suite: &Suite, findings: &mut Vec<Finding>) {
    for (document, letter) in [(MODEL, 'R'), (FAULTS, 'F')] {
        let items = suite.rules.iter().filter(|rule| rule.place.0 == document);
        for (number, rule) in (1..).zip(items) {
            let expected = format!("{letter}{number}");
            if rule.id != expected {
                let what = format!("{} must be {expected}", rule.id);
                findings.push((document, Some(rule.place.1), what));
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL_TEXT: &str = "- **R1** One.\n- **R2** Two.\n";
    const FAULTS_TEXT: &str = "- **F1** One.\n- **F2** Two. Not yet: the Redis store does not exist.\n\
                               - **F3** Three. Own test: `a2-x::three`.\n";
    const CASES_TEXT: &str =
        "\ncases![\n    \"a.one\" => one: rules(R1, F1);\n    \"a.two\" => two: rules(R2);\n];\n";
    const SABOTEURS_TEXT: &str = "\nsaboteurs! {\n    S breaks R1: \"it\" => \"a.one\";\n}\n";

    fn said(model: &str, faults: &str, cases: &str, saboteurs: &str) -> Vec<String> {
        let findings = check(&Suite::read(model, faults, [cases], saboteurs));
        findings
            .into_iter()
            .map(|(path, line, what)| match line {
                Some(line) => format!("{path}:{line}: {what}"),
                None => format!("{path}: {what}"),
            })
            .collect()
    }

    #[test]
    fn a_whole_trail_is_right() {
        assert_eq!(said(MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, SABOTEURS_TEXT), [""; 0]);
    }

    #[test]
    fn a_rule_without_a_case_is_found() {
        let model = format!("{MODEL_TEXT}- **R3** Three. Own test: `a2-x::three`.\n");
        let found = said(&model, FAULTS_TEXT, CASES_TEXT, SABOTEURS_TEXT);
        assert_eq!(found, ["docs/model.md:3: R3 has no case"]);
    }

    #[test]
    fn a_fault_without_a_case_is_found_unless_it_waits_or_has_its_own_test() {
        let faults = format!("{FAULTS_TEXT}- **F4** Four.\n");
        let found = said(MODEL_TEXT, &faults, CASES_TEXT, SABOTEURS_TEXT);
        assert_eq!(found, ["docs/faults.md:4: F4 has no case"]);
    }

    #[test]
    fn a_case_with_a_rule_that_does_not_exist_is_found() {
        let cases = CASES_TEXT.replace("R2", "R2, R3");
        let found = said(MODEL_TEXT, FAULTS_TEXT, &cases, SABOTEURS_TEXT);
        let expected = "conformance/src/cases/: the case a.two names R3, which does not exist";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_case_without_a_rule_is_found_and_one_that_stands_twice() {
        let cases = CASES_TEXT.replace("\n];", "\n    \"a.two\" => three;\n];");
        assert_eq!(
            said(MODEL_TEXT, FAULTS_TEXT, &cases, SABOTEURS_TEXT),
            [
                "conformance/src/cases/: the case a.two stands twice",
                "conformance/src/cases/: the case a.two names no rule"
            ]
        );
    }

    #[test]
    fn a_saboteur_whose_case_does_not_exist_is_found() {
        let saboteurs = SABOTEURS_TEXT.replace("a.one", "a.three");
        let found = said(MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, &saboteurs);
        let expected =
            "conformance/src/saboteurs/mod.rs: S is caught by a.three, which does not exist";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_saboteur_whose_case_does_not_name_its_rule_is_found() {
        let saboteurs = SABOTEURS_TEXT.replace("a.one", "a.two");
        let found = said(MODEL_TEXT, FAULTS_TEXT, CASES_TEXT, &saboteurs);
        let expected = "conformance/src/saboteurs/mod.rs: S breaks R1, which a.two does not name";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_gap_in_the_numbers_is_found() {
        let model = MODEL_TEXT.replace("R2", "R3");
        let cases = CASES_TEXT.replace("R2", "R3");
        let found = said(&model, FAULTS_TEXT, &cases, SABOTEURS_TEXT);
        assert_eq!(found, ["docs/model.md:2: R3 must be R2"]);
    }
}
