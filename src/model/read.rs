//! Reading what a server answers, whole or in pieces.

use std::time::Duration;

use reqwest::Response;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::assemble::{Assemble, Progress};
use super::sse::{Event, Parser};
use super::wire::{Attempt, Failed};
use super::{FailureKind, ModelFailure, Reply, StopReason, StreamEvent, trouble};

/// How much of a refusal is read, in bytes.
pub(super) const LONGEST_ERROR: usize = 64 * 1024;
/// How long one reply, or one event of it, may be, in bytes.
const LONGEST: usize = 128 * 1024 * 1024;
/// How long the usage and the end mark of a reply that is there are waited for.
const GRACE: Duration = Duration::from_secs(5);

/// One answer that is being read.
pub(super) struct Reading<'r, 'a> {
    pub(super) attempt: &'r mut Attempt<'a>,
    pub(super) response: Response,
    pub(super) began: Instant,
    /// Whether the server says that it comes in pieces.
    pub(super) streamed: bool,
}

impl Reading<'_, '_> {
    pub(super) async fn run(mut self) -> Result<Reply, Failed> {
        let Some(first) = self.first().await? else {
            return Err(early(ModelFailure::new(FailureKind::InvalidReply, "the model's answer is empty")));
        };
        // Not every server says truly what it sends. No line of an event begins with one of these.
        let plain = match first.trim_ascii_start().first() {
            Some(b'{' | b'[' | b'<') => true,
            _ => !self.streamed && !first.trim_ascii_start().starts_with(b"data:"),
        };
        if plain { self.whole(first).await } else { self.pieces(first).await }
    }

    /// Everything up to the first byte that means something, and the rest of its chunk.
    async fn first(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        let mut first = Vec::new();
        let limit = self.began + self.attempt.server().timeout;
        loop {
            let next = self.attempt.within(self.response.chunk(), limit, "no answer came").await?;
            match next {
                Ok(Some(chunk)) => first.extend_from_slice(&chunk),
                Ok(None) => return Ok((!first.is_empty()).then_some(first)),
                Err(failed) => return Err(Failed { early: failed.again, ..failed }),
            }
            let begins = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first);
            if begins.iter().any(|byte| !byte.is_ascii_whitespace()) && first.len() >= 3 || first.len() > LONGEST_ERROR
            {
                return Ok(Some(begins.to_vec()));
            }
        }
    }

    /// A reply in one piece.
    async fn whole(&mut self, mut body: Vec<u8>) -> Result<Reply, Failed> {
        let limit = self.began + self.attempt.server().timeout;
        let broken = loop {
            let idle = Instant::now() + self.attempt.server().idle_timeout;
            match self.attempt.within(self.response.chunk(), limit.min(idle), "the answer did not end").await? {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break None,
                Err(failed) => break Some(failed),
            }
            if body.len() > LONGEST {
                return Err(too_long());
            }
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        if let Some(record) = &mut self.attempt.record {
            record.body = Some(body.clone());
        }
        if let Some(failed) = broken {
            return Err(Failed { early: failed.again, ..failed });
        }
        let reply = self.attempt.api().reply(&body).map_err(|failure| {
            // Nothing to be told of by a length that was promised: the end of the body is where the connection ended.
            let cut_off = serde_json::from_str::<IgnoredAny>(&body).is_err_and(|error| error.is_eof());
            if cut_off && failure.kind == FailureKind::InvalidReply {
                return early(ModelFailure::new(
                    FailureKind::InvalidReply,
                    "the model's answer ended early, in the middle of its JSON",
                ));
            }
            Failed::new(failure)
        })?;
        self.show(&reply);
        Ok(reply)
    }

    /// Tells whoever watches about a reply that came in one piece.
    fn show(&mut self, reply: &Reply) {
        let Some(watch) = self.attempt.watch.filter(|_| self.attempt.wants_pieces()) else { return };
        if let Some(reasoning) = &reply.reasoning {
            watch(StreamEvent::Reasoning { delta: reasoning.clone() });
        }
        let text = reply.content.text();
        if !text.is_empty() {
            watch(StreamEvent::Text { delta: text.into_owned() });
        }
        for (index, call) in reply.tool_calls.iter().enumerate() {
            let (id, name, arguments_delta) = (call.id.clone(), call.name.clone(), call.arguments_json().into_owned());
            watch(StreamEvent::ToolCall { index, id, name, arguments_delta });
        }
    }

    /// A reply in pieces.
    async fn pieces(&mut self, first: Vec<u8>) -> Result<Reply, Failed> {
        let mut parser = Parser::new();
        let mut assembler = self.attempt.api().assembler(self.attempt.request);
        let mut progress = Progress::More;
        let mut pushed = self.push(&mut parser, &first, assembler.as_mut(), &mut progress);
        let broken = loop {
            if let Err(failure) = pushed {
                return Err(self.failed(failure, assembler.as_mut()));
            }
            if progress == Progress::End {
                break None;
            }
            let idle = self.attempt.server().idle_timeout;
            let patience = if progress == Progress::Nearly { idle.min(GRACE) } else { idle };
            let limit = Instant::now() + patience;
            match self.attempt.within(self.response.chunk(), limit, "nothing more came in").await {
                Ok(Ok(Some(chunk))) => pushed = self.push(&mut parser, &chunk, assembler.as_mut(), &mut progress),
                Ok(Ok(None)) => break None,
                Ok(Err(failed)) | Err(failed) => break Some(failed.failure),
            }
            if parser.pending() > LONGEST {
                return Err(too_long());
            }
        };
        // The last event may lack its blank line.
        let last = self.finish(&mut parser, assembler.as_mut(), &mut progress);
        if assembler.is_complete() {
            return Ok(assembler.take());
        }
        match (last, broken) {
            (Err(Some(failure)), None) => Err(self.failed(failure, assembler.as_mut())),
            (_, broken) => Err(self.ended_early(broken, assembler.as_mut())),
        }
    }

    fn push(
        &mut self,
        parser: &mut Parser,
        bytes: &[u8],
        assembler: &mut dyn Assemble,
        progress: &mut Progress,
    ) -> Result<(), ModelFailure> {
        parser.push(bytes, |event| self.take(event, assembler, progress))
    }

    /// Reads what is left; `Err(None)` if that is only a part of an event.
    fn finish(
        &mut self,
        parser: &mut Parser,
        assembler: &mut dyn Assemble,
        progress: &mut Progress,
    ) -> Result<(), Option<ModelFailure>> {
        parser.finish(|event| {
            let cut_off = serde_json::from_str::<IgnoredAny>(event.data).is_err_and(|error| error.is_eof());
            if cut_off {
                return Err(None);
            }
            self.take(event, assembler, progress).map_err(Some)
        })
    }

    fn take(
        &mut self,
        event: Event<'_>,
        assembler: &mut dyn Assemble,
        progress: &mut Progress,
    ) -> Result<(), ModelFailure> {
        if *progress == Progress::End {
            return Ok(());
        }
        if let Some(record) = &mut self.attempt.record {
            record.events.push((event.name.to_owned(), event.data.to_owned()));
        }
        let (watch, shown) = (self.attempt.watch.filter(|_| self.attempt.wants_pieces()), &mut self.attempt.shown);
        *progress = assembler.read(event, &mut |piece| {
            if let Some(watch) = watch {
                *shown = true;
                watch(piece);
            }
        })?;
        Ok(())
    }

    /// A failure in the middle of a stream.
    fn failed(&self, mut failure: ModelFailure, assembler: &mut dyn Assemble) -> Failed {
        if self.attempt.shown {
            failure.partial = Some(Box::new(partial_of(assembler)));
        }
        Failed::new(failure)
    }

    /// The end of a stream before that of the reply.
    fn ended_early(&self, broken: Option<ModelFailure>, assembler: &mut dyn Assemble) -> Failed {
        let partial = partial_of(assembler);
        let characters = partial.content.text().chars().count();
        let calls = match partial.tool_calls.len() {
            0 => String::new(),
            1 => " and a part of a tool call".to_owned(),
            many => format!(" and parts of {many} tool calls"),
        };
        let cause = broken.as_ref().map_or_else(String::new, |failure| format!(" ({})", failure.message));
        let kind = broken.map_or(FailureKind::InvalidReply, |failure| match failure.kind {
            FailureKind::Timeout => FailureKind::Timeout,
            _ if self.attempt.shown => FailureKind::InvalidReply,
            other => other,
        });
        let message = format!(
            "the model's answer ended early, after {characters} characters of text{calls}{cause}; it is not complete"
        );
        early(ModelFailure { partial: Some(Box::new(partial)), ..ModelFailure::new(kind, message) })
    }
}

/// What came in, marked as what it is.
fn partial_of(assembler: &mut dyn Assemble) -> Reply {
    Reply { stop_reason: StopReason::Other("incomplete".to_owned()), ..assembler.take() }
}

fn early(failure: ModelFailure) -> Failed {
    Failed { failure, again: true, early: true }
}

fn too_long() -> Failed {
    let message = format!("the model's answer is longer than {} MiB", LONGEST >> 20);
    Failed::new(ModelFailure::new(FailureKind::InvalidReply, trouble::one_line(&message)))
}
