//! Conversations with an agent that uses tools: each is an actor, and what it says is streamed to a
//! reader while it is said.
//!
//! `cargo run --release -p a2-actor --example agent -- [FILE] [--json]`
//!
//! FILE is a SQLite file, one beside the program by default. The model and the tools are in the program:
//! there is no network. Each of four conversations has a lane of its own; within one, the question, the
//! model's steps and the tools' results come one after the other.
//!
//! Kill the program whenever you like and start it again: every conversation goes on where it was, no
//! question is answered twice and no word is said twice.

mod agent;
mod model;

use std::time::Duration;

use a2_actor::CallError;
use a2_runtime::{Runtime, Session};
use a2_store_sqlite::{Index, SqliteStore, StoreExt as _};
use anyhow::{Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};

use agent::{AGENT, Chat, Message};

const CONVERSATIONS: [(&str, &[&str]); 4] = [
    ("ada", &["what is 12 * 12", "and what is 7 + 35", "how far is the moon"]),
    ("grace", &["how far is the sun", "what is 1 / 0", "thank you"]),
    ("edsger", &["what is 2 + 2", "how far is mars"]),
    ("barbara", &["hello", "how far is the moon and what is 384400 / 2"]),
];
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<()> {
    let (mut file, mut json) = (std::env::current_exe()?.with_extension("db"), false);
    for argument in std::env::args().skip(1) {
        if argument == "--json" { json = true } else { file = argument.into() }
    }
    let store = SqliteStore::open(&file).await?;
    let runtime = agent::runtime(store.clone())?;
    runtime.start();
    let readers: Vec<_> = CONVERSATIONS
        .iter()
        .map(|(name, _)| Ok(tokio::spawn(read_along(runtime.session(*name)?))))
        .collect::<Result<_>>()?;
    let chats: Vec<(&str, Chat)> = stream::iter(CONVERSATIONS)
        .map(|(name, questions)| converse(&runtime, name, questions))
        .buffered(CONVERSATIONS.len())
        .try_collect()
        .await?;
    runtime.idle().await?;
    runtime.shutdown(Duration::from_secs(5)).await;
    for reader in readers {
        reader.abort();
    }
    for (name, chat) in &chats {
        check(&store, name, chat).await?;
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&chats)?);
    } else {
        report(&chats);
    }
    Ok(())
}

/// Asks one question after the other. A question that was asked before is the same one, so this goes
/// on wherever an earlier run was killed.
async fn converse(
    runtime: &Runtime,
    name: &'static str,
    questions: &[&str],
) -> Result<(&'static str, Chat), CallError> {
    let agent = AGENT.of(&runtime.session(name)?);
    for (n, question) in questions.iter().enumerate() {
        let ask = Message::Asked((*question).to_owned());
        agent.call(ask, WITHIN).id(format!("question-{n}")).await?;
        // The answer is a later turn of the same actor.
        while agent.state().await?.answers.len() <= n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok((name, agent.state().await?))
}

/// Prints a conversation as it happens, to standard error: what was there already, then what comes.
async fn read_along(session: Session) -> Result<()> {
    let mut events = session.stream(Index::ZERO);
    while let Some(event) = events.try_next().await? {
        if let Some(line) = agent::line(&event)? {
            eprintln!("{:>8} {:>3}  {line}", session.id(), event.index);
        }
    }
    Ok(())
}

/// Every word that was streamed is in the answers, once.
async fn check(store: &SqliteStore, name: &str, chat: &Chat) -> Result<()> {
    let session = name.try_into()?;
    let events: Vec<_> = store.read_all(&session, Index::ZERO).try_collect().await?;
    let mut words = Vec::new();
    for event in events.iter().filter(|event| event.event_type == agent::SAID) {
        words.push(event.payload.deserialize::<String>()?);
    }
    let answers: Vec<_> = chat.answers.iter().flat_map(|answer| answer.split(' ')).collect();
    ensure!(words == answers, "{name}: the reader saw {words:?}, the answers are {answers:?}");
    Ok(())
}

fn report(chats: &[(&str, Chat)]) {
    for (name, chat) in chats {
        println!("{name}");
        for ((question, answer), tools) in chat.questions.iter().zip(&chat.answers).zip(&chat.used)
        {
            println!("  {question}\n    {answer} ({} tools used)", tools.len());
        }
    }
}
