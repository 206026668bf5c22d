//! What a message says: text, or a list of parts.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// What a message says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text and images in order.
    Parts(Vec<Part>),
}

impl Content {
    /// The text: the text itself, or the text parts joined by a line break. Borrowed where it can be.
    ///
    /// ```
    /// use hookwright::message::{Content, Part};
    /// let content = Content::Parts(vec![Part::text("one"), Part::image("image/png", "aGk="), Part::text("two")]);
    /// assert_eq!(content.text(), "one\ntwo");
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        let parts = match self {
            Content::Text(text) => return Cow::Borrowed(text),
            Content::Parts(parts) => parts,
        };
        let mut texts = parts.iter().filter_map(|part| match part {
            Part::Text(part) => Some(part.text.as_str()),
            _ => None,
        });
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let mut joined = format!("{first}\n{second}");
                for text in texts {
                    joined.push('\n');
                    joined.push_str(text);
                }
                Cow::Owned(joined)
            }
        }
    }

    /// The images, in order.
    pub fn images(&self) -> impl Iterator<Item = &ImagePart> {
        let parts: &[Part] = match self {
            Content::Text(_) => &[],
            Content::Parts(parts) => parts,
        };
        parts.iter().filter_map(|part| match part {
            Part::Image(image) => Some(image),
            _ => None,
        })
    }

    /// Whether there is nothing in it: no text, no image, no part of another kind.
    pub fn is_empty(&self) -> bool {
        match self {
            Content::Text(text) => text.is_empty(),
            Content::Parts(parts) => parts.iter().all(|part| matches!(part, Part::Text(part) if part.text.is_empty())),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Content::Text(String::new())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::Text(text.to_owned())
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Content::Parts(parts)
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// A piece of text.
    Text(TextPart),
    /// A picture.
    Image(ImagePart),
    /// A kind of part that this version does not know, kept as it is.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl Part {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text(TextPart { text: text.into(), extra: Map::new() })
    }

    /// A picture of `media_type` (such as `image/png`) as base64 text.
    pub fn image(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Part::Image(ImagePart {
            media_type: Some(media_type.into()),
            data: Some(data.into()),
            url: None,
            extra: Map::new(),
        })
    }

    /// A picture that the model's server fetches from `url`.
    pub fn image_url(url: impl Into<String>) -> Self {
        Part::Image(ImagePart { media_type: None, data: None, url: Some(url.into()), extra: Map::new() })
    }
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Fields that this version does not know, such as a cache mark.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A picture: either `data` or `url`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImagePart {
    /// Its kind, such as `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its bytes as base64 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Where it can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reads `null` as empty content, as servers write it beside tool calls.
pub(super) fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    Ok(Option::<Content>::deserialize(deserializer)?.unwrap_or_default())
}
