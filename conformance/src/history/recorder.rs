//! Writes a history down, in memory or to a file that several processes share.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::note::{Answer, Asked, Note};
use a2_core::SessionId;

/// Takes the notes of a history. Clones take them for the same one.
#[derive(Debug, Clone)]
pub struct Recorder {
    sink: Arc<Sink>,
    /// The number of the next call.
    next: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
    unknown: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Sink {
    Memory(Mutex<Vec<Note>>),
    /// Each note is one line and one write at the file's end, so that the order of the lines is that of
    /// what happened, in whichever process.
    Journal(Mutex<Journal>),
}

#[derive(Debug)]
struct Journal {
    file: File,
    failed: Option<io::Error>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// In memory.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Sink::Memory(Mutex::default()), 0)
    }

    /// To the end of a file. Each process that writes there has another number.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn journal(path: &Path, process: u32) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let journal = Journal { file, failed: None };
        Ok(Self::with(Sink::Journal(Mutex::new(journal)), u64::from(process) << 32))
    }

    fn with(sink: Sink, first: u64) -> Self {
        Self {
            sink: Arc::new(sink),
            next: Arc::new(AtomicU64::new(first)),
            answered: Arc::default(),
            unknown: Arc::default(),
        }
    }

    /// How many calls were answered so far, and how many have an unknown outcome.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.unknown.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&self, worker: u32, session: Option<&SessionId>, asked: Asked) -> u64 {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        self.take(Note::Began { call, worker, session: session.cloned(), asked });
        call
    }

    pub(super) fn end(&self, call: u64, answer: Answer) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.take(Note::Ended { call, answer });
    }

    /// The call's answer never comes.
    pub(super) fn lost(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a process was killed, which wrote to the same file.
    pub fn killed(&self, process: u32) {
        self.take(Note::Killed { process });
    }

    pub(super) fn take(&self, note: Note) {
        match &*self.sink {
            Sink::Memory(notes) => lock(notes).push(note),
            Sink::Journal(journal) => {
                let mut journal = lock(journal);
                // What a killed process has written in part stays on a line of its own.
                let written = serde_json::to_string(&note)
                    .map_err(io::Error::from)
                    .and_then(|line| journal.file.write_all(format!("\n{line}\n").as_bytes()));
                if let Err(error) = written {
                    journal.failed.get_or_insert(error);
                }
            }
        }
    }

    /// The notes so far, which memory no longer keeps.
    ///
    /// # Errors
    /// A note could not be written: the history is not whole.
    pub fn notes(&self, journal: Option<&Path>) -> io::Result<Vec<Note>> {
        match (&*self.sink, journal) {
            (Sink::Memory(notes), _) => Ok(std::mem::take(&mut *lock(notes))),
            (Sink::Journal(own), Some(path)) => {
                if let Some(error) = lock(own).failed.take() {
                    return Err(error);
                }
                let text = std::fs::read(path)?;
                // A torn line was a call that has not begun, or an answer that nobody has had.
                let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
            }
            (Sink::Journal(_), None) => Err(io::Error::other("a journal is read from its file")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_outlives_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let first = Recorder::journal(&path, 1).unwrap();
        let call = first.begin(7, None, Asked::Sessions);
        // The process is killed in the midst of a write.
        File::options().append(true).open(&path).unwrap().write_all(b"\n{\"Ended\":{\"ca").unwrap();
        let second = Recorder::journal(&path, 2).unwrap();
        let other = second.begin(7, None, Asked::Reclaim);
        second.end(other, Answer::Done);
        let notes = second.notes(Some(&path)).unwrap();
        let asked = |call, asked| Note::Began { call, worker: 7, session: None, asked };
        assert_eq!((call, other), (1 << 32, 2 << 32));
        let ended = Note::Ended { call: other, answer: Answer::Done };
        assert_eq!(notes, [asked(call, Asked::Sessions), asked(other, Asked::Reclaim), ended]);
    }
}
