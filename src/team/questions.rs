//! Who waits for whose answer.

use super::envelope::Envelope;

/// A question that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The envelope in which it was asked.
    pub(super) id: String,
    pub(super) from: String,
    pub(super) to: String,
}

/// The questions that have no answer yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Questions(Vec<Question>);

impl Questions {
    /// Takes in an envelope and whom it addresses: it answers what the sender was asked by these, and may ask.
    pub(super) fn note(&mut self, envelope: &Envelope, addressed: &[String]) {
        self.0.retain(|question| question.to != envelope.sender || !addressed.contains(&question.from));
        if envelope.expects_reply {
            self.0.extend(addressed.iter().map(|to| Question {
                id: envelope.id.clone(),
                from: envelope.sender.clone(),
                to: to.clone(),
            }));
        }
    }

    /// Nobody answers any more on behalf of `name`.
    pub(super) fn drop_of(&mut self, name: &str) {
        self.0.retain(|question| question.to != name);
    }

    /// Those who were asked by `name`, each once.
    pub(super) fn asked_by(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for question in self.0.iter().filter(|question| question.from == name) {
            if !names.contains(&question.to) {
                names.push(question.to.clone());
            }
        }
        names
    }

    /// What `name` was asked.
    pub(super) fn owed_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Question> {
        self.0.iter().filter(move |question| question.to == name)
    }
}
