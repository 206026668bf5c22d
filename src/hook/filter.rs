//! stub replaced at merge
#![allow(missing_docs)]
use std::borrow::Cow;
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterSpec {
    pub tool_name: Option<String>,
    pub tool_matcher: Option<String>,
    pub tool_regex: Option<String>,
    pub model_prefix: Option<String>,
    pub agent: Option<String>,
    pub arguments: std::collections::BTreeMap<String, String>,
}
pub struct Filter;
pub trait FilterSubject {
    fn tool_name(&self) -> Option<&str>;
    fn model(&self) -> Option<&str>;
    fn agent(&self) -> Option<&str>;
    fn argument(&self, name: &str) -> Option<Cow<'_, str>>;
}
#[derive(Debug, thiserror::Error)]
#[error("bad filter")]
pub struct FilterError;
#[derive(Debug, thiserror::Error)]
#[error("mismatch")]
pub struct Mismatch;
impl Filter {
    pub fn compile(_: &FilterSpec) -> Result<Filter, FilterError> {
        Ok(Filter)
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn matches(&self, _: &dyn FilterSubject) -> bool {
        true
    }
    pub fn explain(&self, _: &dyn FilterSubject) -> Result<(), Mismatch> {
        Ok(())
    }
    pub fn fits_any_tool(&self, _: &[&str]) -> Option<String> {
        None
    }
}
