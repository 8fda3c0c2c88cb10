//! The numbered items of `docs/model.md` and `docs/faults.md`.

use super::Rule;

/// The items that begin with `- **R1**` and the like, `letter` being the R.
pub(super) fn read(document: &str, letter: char, path: &'static str) -> Vec<Rule> {
    let opening = format!("- **{letter}");
    let mut rules: Vec<Rule> = Vec::new();
    let mut within = false;
    for (number, line) in (1..).zip(document.lines()) {
        if let Some((id, text)) = line.strip_prefix(&opening).and_then(|rest| rest.split_once("**"))
        {
            let id = format!("{letter}{id}");
            rules.push(Rule { id, text: text.trim().to_owned(), place: (path, number) });
            within = true;
        } else if line.starts_with('#') || line.starts_with("- ") {
            within = false;
        } else if let Some(rule) = rules.last_mut().filter(|_| within) {
            // The item goes on; its tables and blank lines are not part of its first words.
            rule.text.push(' ');
            rule.text.push_str(line.trim());
        }
    }
    for rule in &mut rules {
        rule.text = rule.text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_goes_on_to_the_next() {
        let model = "# The model\n\n- **R1** A *session* has\n  a name.\n- **R2** Limits:\n\n  | a |\n\
                     ## More\nNot an item.\n- **R10** The last,\n  `x`.\n";
        let found: Vec<_> =
            read(model, 'R', "m.md").into_iter().map(|r| (r.id, r.text, r.place.1)).collect();
        let rule = |id: &str, text: &str, line| (id.to_owned(), text.to_owned(), line);
        assert_eq!(
            found,
            [
                rule("R1", "A *session* has a name.", 3),
                rule("R2", "Limits: | a |", 5),
                rule("R10", "The last, `x`.", 10)
            ]
        );
        assert_eq!(read(model, 'F', "m.md"), []);
    }

    #[test]
    fn a_fault_names_its_own_tests_and_what_it_waits_for() {
        let faults = "- **F1** A2: no. Own tests: `a2-store-sqlite::one_file`,\n  `a2-core::two`.\n\
                      - **F2** `a::b` is wrong. Not yet: the Redis\n  store does not exist.\n\
                      - **F3** The rest: not yet, the Redis store does not exist.\n";
        let faults = read(faults, 'F', "f.md");
        let own: Vec<_> = faults[0].own_tests().collect();
        assert_eq!(own, [("a2-store-sqlite", "one_file"), ("a2-core", "two")]);
        assert_eq!(faults[1].own_tests().count(), 0);
        let waits: Vec<_> = faults.iter().map(Rule::waits).collect();
        assert_eq!(waits, [false, true, false], "the third counts for what there is");
    }
}
