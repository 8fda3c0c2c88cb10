//! What stores tell each other through the server: which sessions changed, never how.
//!
//! Of presence they tell the change itself where it is small enough, for watchers are told who made it;
//! else a note names the fields, and they are read.
//!
//! A note is a hint. It is made after the commit, outside its transaction: NOTIFY holds a lock that is
//! the whole server's until its own commit is done. Notes that wait at the same moment go together.

use std::collections::BTreeMap;

use a2_core::PresencePatch;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Bytes of one notification: the server takes fewer than 8,000.
const BYTES: usize = 7_900;
/// Notes that wait to be sent. With more, everybody looks for everything.
const WAITING: usize = 10_000;

/// What there is to tell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Note {
    /// Events of a session up to an index.
    Appended(String),
    /// A session's clear marker at an index.
    Cleared(String),
    /// A session has heads that can be claimed.
    Hint(String),
    /// A session may have changed in any way: what was done there was answered to nobody.
    Session(String),
    /// A namespace's presence.
    Presence(String),
    /// A timer, due at a time.
    Timer,
    /// More than can be told.
    Everything,
}

impl Note {
    const fn letter(&self) -> &'static str {
        match self {
            Self::Appended(_) => "a",
            Self::Cleared(_) => "c",
            Self::Hint(_) => "h",
            Self::Session(_) => "s",
            Self::Presence(_) => "p",
            Self::Timer => "t",
            Self::Everything => "*",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Appended(name)
            | Self::Cleared(name)
            | Self::Hint(name)
            | Self::Session(name)
            | Self::Presence(name) => name,
            Self::Timer | Self::Everything => "",
        }
    }

    fn read(letter: &str, name: &str) -> Option<Self> {
        Some(match letter {
            "a" => Self::Appended(name.to_owned()),
            "c" => Self::Cleared(name.to_owned()),
            "h" => Self::Hint(name.to_owned()),
            "s" => Self::Session(name.to_owned()),
            "p" => Self::Presence(name.to_owned()),
            "t" => Self::Timer,
            "*" => Self::Everything,
            _ => return None,
        })
    }
}

/// A change of a namespace's presence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) namespace: String,
    /// When the fields that it sets go.
    pub(crate) expires_at: i64,
    pub(crate) patch: PresencePatch,
    /// The patch's values are too long: these are its fields, with whether they are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<(String, bool)>,
}

impl Changed {
    /// Without its values.
    fn without_values(mut self) -> Self {
        let values = std::mem::take(&mut self.patch.values);
        let field = |(field, value): (a2_core::Field, Option<_>)| {
            (field.as_str().to_owned(), value.is_none())
        };
        self.fields = values.into_iter().map(field).collect();
        self
    }
}

/// Notes that wait, each once: an index the highest, a time the soonest. Changes of presence are kept
/// in their order.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: BTreeMap<Note, i64>,
    changes: Vec<Changed>,
}

impl Notes {
    pub(crate) fn add(&mut self, note: Note, number: i64) {
        if self.is_full() {
            return;
        }
        let soonest = note == Note::Timer;
        let kept = self.notes.entry(note).or_insert(number);
        *kept = if soonest { number.min(*kept) } else { number.max(*kept) };
    }

    pub(crate) fn add_change(&mut self, change: Changed) {
        if self.is_full() {
            return;
        }
        let bytes: usize =
            change.patch.values.values().flatten().map(|value| value.byte_len()).sum();
        // What is too long to be told is not kept either.
        self.changes.push(if bytes > BYTES { change.without_values() } else { change });
    }

    /// Whether there are too many: then they are all of them one.
    fn is_full(&mut self) -> bool {
        if self.notes.contains_key(&Note::Everything) {
            return true;
        }
        if self.notes.len() + self.changes.len() < WAITING {
            return false;
        }
        *self = Self::default();
        self.notes.insert(Note::Everything, 0);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.changes.is_empty()
    }

    /// The texts to send: `["source",["a","session",7],…]`.
    pub(crate) fn into_texts(self, source: &str) -> Vec<String> {
        let mut texts = Texts::new(source);
        for change in self.changes {
            let namespace = change.namespace.clone();
            let has_values = change.fields.is_empty();
            let is_told = texts.add(&change) || (has_values && texts.add(&change.without_values()));
            if !is_told {
                texts.add(&(Note::Presence(String::new()).letter(), namespace, 0));
            }
        }
        for (note, number) in self.notes {
            texts.add(&(note.letter(), note.name(), number));
        }
        texts.finish()
    }
}

/// Texts under construction.
struct Texts {
    start: String,
    text: String,
    done: Vec<String>,
}

impl Texts {
    fn new(source: &str) -> Self {
        let start = format!("[{}", serde_json::Value::from(source));
        Self { text: start.clone(), start, done: Vec::new() }
    }

    /// Adds an entry, unless it is too long for any text.
    fn add(&mut self, entry: &impl Serialize) -> bool {
        let Ok(entry) = serde_json::to_string(entry) else { return false };
        if self.start.len() + entry.len() + 2 > BYTES {
            return false;
        }
        if self.text.len() + entry.len() + 2 > BYTES {
            let text = std::mem::replace(&mut self.text, self.start.clone());
            self.done.push(text + "]");
        }
        self.text.push(',');
        self.text.push_str(&entry);
        true
    }

    fn finish(mut self) -> Vec<String> {
        if self.text.len() > self.start.len() {
            self.done.push(self.text + "]");
        }
        self.done
    }
}

/// What a notification says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Note(Note, i64),
    Changed(Box<Changed>),
}

/// Reads a notification: who sent it, and what it says. What cannot be read may mean anything.
pub(crate) fn read(text: &str) -> (Option<String>, Vec<Told>) {
    let everything = || Told::Note(Note::Everything, 0);
    // Not as values: those of presence are kept byte for byte.
    let parts: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    let source = parts.first().and_then(|source| serde_json::from_str(source.get()).ok());
    let Some(source) = source else { return (None, vec![everything()]) };
    let told = |part: &&RawValue| -> Option<Told> {
        if part.get().starts_with('{') {
            return serde_json::from_str(part.get()).ok().map(Told::Changed);
        }
        let (letter, name, number): (String, String, i64) =
            serde_json::from_str(part.get()).ok()?;
        Some(Told::Note(Note::read(&letter, &name)?, number))
    };
    // Of a newer version, it may say what this one does not know.
    let notes = parts.iter().skip(1).map(|part| told(part).unwrap_or_else(everything));
    (Some(source), notes.collect())
}

#[cfg(test)]
mod tests {
    use a2_core::{Field, Json, Participant, Timestamp};

    use super::*;

    fn appended(name: &str) -> Note {
        Note::Appended(name.to_owned())
    }

    fn everything() -> Vec<Told> {
        vec![Told::Note(Note::Everything, 0)]
    }

    #[test]
    fn notes_are_merged_and_come_back() {
        let mut notes = Notes::default();
        notes.add(appended("a\"b"), 3);
        notes.add(appended("a\"b"), 7);
        notes.add(appended("a\"b"), 5);
        notes.add(Note::Timer, 200);
        notes.add(Note::Timer, 100);
        let texts = notes.into_texts("me");
        assert_eq!(texts, [r#"["me",["a","a\"b",7],["t","",100]]"#]);
        let expected = vec![Told::Note(appended("a\"b"), 7), Told::Note(Note::Timer, 100)];
        assert_eq!(read(&texts[0]), (Some("me".to_owned()), expected));
    }

    #[test]
    fn no_text_is_too_long() {
        let mut notes = Notes::default();
        for n in 0..40 {
            // Names that are longest as JSON: each of these is written as six characters.
            notes.add(appended(&format!("{n:02}{}", "\u{1}".repeat(510))), i64::MAX);
        }
        let texts = notes.into_texts("me");
        assert!(texts.iter().all(|text| text.len() < 8_000), "{}", texts[0].len());
        assert_eq!(texts.iter().map(|text| read(text).1.len()).sum::<usize>(), 40);
    }

    fn change(value: &str) -> Changed {
        let field = |name: &str| Field::new(name).unwrap();
        let values = [(field("x"), Some(Json::parse(value).unwrap())), (field("y"), None)];
        let patch = PresencePatch::new(
            Participant::new("p").unwrap(),
            None,
            Timestamp::from_millis(5),
            "me".to_owned(),
            values.into_iter().collect(),
        );
        Changed { namespace: "n".to_owned(), expires_at: 9, patch, fields: Vec::new() }
    }

    #[test]
    fn a_change_of_presence_is_told_as_far_as_it_fits() {
        let mut notes = Notes::default();
        notes.add_change(change(r#"{"b":1e400,"a":1.0,"a":[]}"#));
        notes.add_change(change(&format!("\"{}\"", "v".repeat(8_000))));
        let texts = notes.into_texts("me");
        assert_eq!(texts.len(), 1);
        let (_, told) = read(&texts[0]);
        let mut long = change("1");
        long.patch.values.clear();
        long.fields = vec![("x".to_owned(), false), ("y".to_owned(), true)];
        let expected = [change(r#"{"b":1e400,"a":1.0,"a":[]}"#), long]
            .map(|change| Told::Changed(Box::new(change)));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_change_whose_fields_are_too_long_names_the_namespace() {
        let mut long = change("1");
        long.patch.values = (0..64)
            .map(|n| (Field::new(format!("{n:03}{}", "f".repeat(500))).unwrap(), None))
            .collect();
        let mut notes = Notes::default();
        notes.add_change(long);
        assert_eq!(notes.into_texts("me"), [r#"["me",["p","n",0]]"#]);
    }

    #[test]
    fn what_cannot_be_told_or_read_may_be_anything() {
        let mut notes = Notes::default();
        for n in 0..10_001 {
            notes.add(appended(&n.to_string()), 1);
        }
        notes.add(appended("late"), 1);
        notes.add_change(change("1"));
        assert_eq!(notes.into_texts("me"), [r#"["me",["*","",0]]"#]);
        for text in ["", "x", "{}", "[]", "[1]"] {
            assert_eq!(read(text), (None, everything()), "{text}");
        }
        for text in [r#"["me",["z","",0]]"#, r#"["me",["a","s"]]"#, r#"["me",7]"#, r#"["me",{}]"#] {
            assert_eq!(read(text), (Some("me".to_owned()), everything()), "{text}");
        }
    }
}
