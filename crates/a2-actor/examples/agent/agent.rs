//! The agent: an actor that keeps the conversation, and its concurrent parts, the model and the tools.

use std::time::Duration;

use a2_actor::{Actor, Actors, ActorsExt, Concurrent, Turn, actor};
use a2_runtime::{Events, Handled, NonRetriable, RetryPolicy, Runtime};
use a2_store_sqlite::{Event, NewEvent, SqliteStore};
use serde::{Deserialize, Serialize};

use crate::model::{self, Step};

/// A conversation: all that the agent knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Chat {
    pub(crate) questions: Vec<String>,
    pub(crate) answers: Vec<String>,
    /// For each question the tools that were used, with what they said.
    pub(crate) used: Vec<Vec<(String, String)>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    #[serde(rename = "asked")]
    Asked(String),
    #[serde(rename = "used")]
    Used { tool: String, said: String },
    #[serde(rename = "answered")]
    Answered(String),
}
impl Events for Message {}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Think {
    #[serde(rename = "think")]
    On { question: String, used: Vec<(String, String)> },
}
impl Events for Think {}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Use {
    #[serde(rename = "use")]
    Tool(String),
}
impl Events for Use {}

pub(crate) const AGENT: Actor<Chat, Message> = actor("agent");
/// Actors of their own names, since an actor has one concurrent part.
const MODEL: Concurrent<Think, ()> = actor::<(), Message>("model").concurrent();
const TOOLS: Concurrent<Use, ()> = actor::<(), Message>("tools").concurrent();

/// A word of an answer, for whoever reads along.
pub(crate) const SAID: &str = "agent.said";

/// How soon what a killed process held is taken over.
const TTL: Duration = Duration::from_secs(1);

pub(crate) fn runtime(store: SqliteStore) -> a2_core::Result<Runtime> {
    let hosted = [AGENT.host(agent), MODEL.host(think), TOOLS.host(tools)];
    let retry = RetryPolicy::new().first(Duration::from_millis(10)).budget(50);
    let actors = Actors::new(hosted).retry(retry);
    Runtime::builder(store).actors(actors).ttl(TTL).sweep_every(TTL).build()
}

/// One turn after the other: takes note, and sends on.
async fn agent(mut chat: Chat, message: Message, turn: Turn) -> Handled<Chat> {
    match message {
        Message::Asked(question) => {
            chat.questions.push(question);
            chat.used.push(Vec::new());
        }
        Message::Used { tool, said } => {
            chat.used
                .last_mut()
                .ok_or_else(|| NonRetriable::new("nobody asked"))?
                .push((tool, said));
        }
        Message::Answered(answer) => {
            chat.answers.push(answer);
            return Ok(chat);
        }
    }
    let question = chat.questions.last().cloned().unwrap_or_default();
    let used = chat.used.last().cloned().unwrap_or_default();
    turn.send(MODEL, Think::On { question, used })?;
    Ok(chat)
}

/// Asks the model. Its words are appended while they come, under ids that a second run makes again:
/// what was said before a crash is not said twice.
async fn think(Think::On { question, used }: Think, turn: Turn) -> Handled<()> {
    match model::step(&question, &used) {
        Step::Use(tool) => turn.send(TOOLS, Use::Tool(tool))?,
        Step::Say(answer) => {
            for (n, word) in answer.split(' ').enumerate() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let id = turn.context().derive_id(&format!("word {n}"));
                turn.session().append(NewEvent::new(SAID, word)?.id(id)?).await?;
            }
            turn.send(AGENT, Message::Answered(answer))?
        }
    };
    Ok(())
}

/// Uses a tool. Every tool is down now and then.
async fn tools(Use::Tool(tool): Use, turn: Turn) -> Handled<()> {
    if turn.context().attempt() % 2 == 1 && tool.len() % 3 == 0 {
        return Err("the tool does not answer".into());
    }
    let said = model::tool(&tool).unwrap_or_else(|error| format!("error: {error}"));
    turn.send(AGENT, Message::Used { tool, said })?;
    Ok(())
}

/// What a reader is shown of an event.
pub(crate) fn line(event: &Event) -> a2_core::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Sent {
        actor: String,
        #[serde(rename = "type")]
        kind: String,
        payload: serde_json::Value,
    }
    Ok(match event.event_type.as_str() {
        SAID => Some(format!("… {}", event.payload.deserialize::<String>()?)),
        "a2.actor.message" | "a2.actor.request" => {
            let Sent { actor, kind, payload } = event.payload.deserialize()?;
            Some(format!("{actor} ← {kind} {payload}"))
        }
        _ => None,
    })
}
