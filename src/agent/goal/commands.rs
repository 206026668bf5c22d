//! Commands that pass while a goal is under way: a list that is data.

use serde::{Deserialize, Serialize};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandAction {
    /// It ends the goal.
    Cancel,
    /// The program that shows the goal knows.
    Host,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its word, with the slash.
    pub name: String,
    /// What it does.
    pub action: CommandAction,
}

/// The commands that are known.
#[derive(Debug, Clone)]
pub struct Commands(Vec<Command>);

/// A list of commands that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no command; a command is one word that begins with a slash, such as /status")]
pub struct CommandsError(String);

#[derive(Deserialize)]
struct Table {
    command: Vec<Command>,
}

impl Default for Commands {
    fn default() -> Self {
        let table: Table = toml::from_str(include_str!("commands.toml")).expect("the built-in list is tested");
        Commands(table.command)
    }
}

impl Commands {
    /// The built-in commands and those of the program that shows the goal.
    ///
    /// # Errors
    /// A name that is no command.
    pub fn with(names: impl IntoIterator<Item = String>) -> Result<Self, CommandsError> {
        let mut commands = Commands::default();
        for name in names {
            if !name.starts_with('/') || name.len() < 2 || name.contains(char::is_whitespace) {
                return Err(CommandsError(name));
            }
            commands.0.push(Command { name, action: CommandAction::Host });
        }
        Ok(commands)
    }

    /// The command that a text begins with, if it begins with one.
    pub fn find(&self, text: &str) -> Option<&Command> {
        let word = text.split_whitespace().next()?;
        self.0.iter().find(|command| command.name.eq_ignore_ascii_case(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_first_word_and_nothing_like_it() {
        let commands = Commands::with(["/budget".to_owned()]).unwrap();
        assert_eq!(commands.find(" /STATUS now").unwrap().action, CommandAction::Host);
        assert_eq!(commands.find("/cancel").unwrap().action, CommandAction::Cancel);
        assert!(commands.find("/budget 3").is_some());
        for text in ["", "status", "say /status", "/statusbar", "/etc/passwd", "//cancel"] {
            assert_eq!(commands.find(text), None, "{text}");
        }
        assert!(Commands::with(["budget".to_owned()]).is_err());
    }
}
