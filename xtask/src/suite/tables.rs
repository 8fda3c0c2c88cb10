//! The suite's tables, read from the text of its sources: `cases![…]` and `saboteurs! {…}`.

use super::{Case, Saboteur};

/// The cases of a file's table; none when it has none.
pub(super) fn cases(source: &str) -> Vec<Case> {
    let Some(table) = between(source, "\ncases![", "\n];") else { return Vec::new() };
    let mut defaults = Case::default();
    let mut cases = Vec::new();
    for entry in table.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        if let Some(options) = entry.strip_prefix("all:") {
            apply(&mut defaults, options);
            continue;
        }
        let (name, rest) = entry.split_once("=>").unwrap_or((entry, ""));
        let mut case = Case { name: unquoted(name), ..defaults.clone() };
        if let Some((_, options)) = rest.split_once(':') {
            apply(&mut case, options);
        }
        cases.push(case);
    }
    cases
}

/// The saboteurs of the table.
pub(super) fn saboteurs(source: &str) -> Vec<Saboteur> {
    let table = between(source, "\nsaboteurs! {", "\n}").unwrap_or_default();
    let mut saboteurs = Vec::new();
    for entry in table.split("\";").map(str::trim).filter(|entry| !entry.is_empty()) {
        // `Name breaks R1: "how" => "case`
        let (head, rest) = entry.split_once(':').unwrap_or((entry, ""));
        let (name, rule) = head.split_once(" breaks ").unwrap_or((head, ""));
        let (breaks, caught_by) = rest.split_once("=>").unwrap_or((rest, ""));
        saboteurs.push(Saboteur {
            name: name.trim().to_owned(),
            rule: rule.trim().to_owned(),
            breaks: unquoted(breaks),
            caught_by: unquoted(caught_by),
        });
    }
    saboteurs
}

/// What stands between the two, without comments.
fn between(source: &str, opening: &str, closing: &str) -> Option<String> {
    let (_, after) = source.split_once(opening)?;
    let (table, _) = after.split_once(closing)?;
    let lines = table.lines().filter(|line| !line.trim_start().starts_with("//"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn unquoted(literal: &str) -> String {
    literal.trim().trim_matches('"').to_owned()
}

/// As the macro does: rules are added, what is needed replaces what was.
fn apply(case: &mut Case, options: &str) {
    let mut rest = options.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (arguments, after) = match after.strip_prefix('(') {
            Some(after) => after.split_once(')').unwrap_or((after, "")),
            None => ("", after),
        };
        let arguments = arguments.split(',').map(|argument| argument.trim().to_owned());
        match name {
            "rules" => case.rules.extend(arguments),
            "needs" => case.needs = arguments.collect(),
            "both" | "live" => case.live = true,
            "manual" => case.live = false,
            _ => {}
        }
        rest = after.trim_start_matches([',', ' ', '\n']);
        if end == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, rules: &[&str], needs: &[&str], live: bool) -> Case {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Case { name: name.to_owned(), rules: owned(rules), needs: owned(needs), live }
    }

    #[test]
    fn a_table_of_cases_is_read_as_the_macro_reads_it() {
        let source = "//! Cases.\nuse x;\n\ncases![\n    all: rules(R74), needs(Timers), both;\n    \
                      // A comment; with a semicolon.\n    \"timers.a\" => a;\n    \
                      \"timers.b\" => b:\n        rules(R1, F2), manual, needs(Timers, Another);\n    \
                      \"timers.c\" => c: own, slow;\n];\n\nasync fn a(cx: Cx) {}\n";
        assert_eq!(
            cases(source),
            [
                case("timers.a", &["R74"], &["Timers"], true),
                case("timers.b", &["R74", "R1", "F2"], &["Timers", "Another"], false),
                case("timers.c", &["R74"], &["Timers"], true),
            ]
        );
        let plain = "\ncases![\n    \"a.b\" => b;\n    \"a.c\" => c: rules(R9), live;\n];\n";
        assert_eq!(cases(plain), [case("a.b", &[], &[], false), case("a.c", &["R9"], &[], true)]);
        assert_eq!(cases("//! No table.\n"), []);
    }

    #[test]
    fn the_table_of_saboteurs_is_read() {
        let source = "macro_rules! saboteurs {\n}\n\nsaboteurs! {\n    // Appending.\n    \
                      A breaks R2: \"one: too high\" => \"append.a\";\n    \
                      B breaks R40:\n        \"late\" => \"append.b\";\n}\n";
        let expected = [("A", "R2", "one: too high", "append.a"), ("B", "R40", "late", "append.b")];
        let found = saboteurs(source);
        let found: Vec<_> = found
            .iter()
            .map(|s| (s.name.as_str(), s.rule.as_str(), s.breaks.as_str(), s.caught_by.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}
