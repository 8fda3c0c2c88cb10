//! What stands for a language model and its tools here: it reads questions, asks for one tool at a time,
//! and says what it was told.

/// What the model does next.
pub(crate) enum Step {
    Use(String),
    Say(String),
}

const DISTANCES: [(&str, u64); 3] =
    [("moon", 384_400), ("sun", 149_600_000), ("mars", 225_000_000)];

/// The next step on a question, after these tools.
pub(crate) fn step(question: &str, used: &[(String, String)]) -> Step {
    let words: Vec<_> = question.split_whitespace().collect();
    let mut wanted = Vec::new();
    for (name, _) in DISTANCES {
        if words.contains(&name) {
            wanted.push(format!("distance {name}"));
        }
    }
    for three in words.windows(3) {
        if let [a, operator @ ("+" | "*" | "/"), b] = three {
            wanted.push(format!("calculate {a} {operator} {b}"));
        }
    }
    if let Some(tool) = wanted.into_iter().nth(used.len()) {
        return Step::Use(tool);
    }
    let said: Vec<_> = used.iter().map(|(tool, said)| format!("{tool} gives {said}")).collect();
    Step::Say(if said.is_empty() { "you are welcome".into() } else { said.join(", and ") })
}

/// What a tool says.
pub(crate) fn tool(call: &str) -> Result<String, &'static str> {
    let words: Vec<_> = call.split(' ').collect();
    let number = |text: &str| text.parse::<u64>().map_err(|_| "this is no number");
    let result = match *words {
        ["distance", name] => {
            let found = DISTANCES.iter().find(|(known, _)| *known == name);
            return found.map(|(_, km)| format!("{km} km")).ok_or("nobody knows");
        }
        ["calculate", a, "+", b] => number(a)?.checked_add(number(b)?),
        ["calculate", a, "*", b] => number(a)?.checked_mul(number(b)?),
        ["calculate", a, "/", b] => number(a)?.checked_div(number(b)?),
        _ => return Err("there is no such tool"),
    };
    result.map(|n| n.to_string()).ok_or("it has no result")
}
