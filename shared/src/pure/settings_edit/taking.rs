//! Which splices take our entries out again.

use std::collections::BTreeSet;

use super::{Before, Node, Refusal, Splice, no_duplicates, object, our_handler, spans_of_members};

pub(super) struct Taking<'a> {
    pub(super) before: &'a Before,
    pub(super) splices: Vec<Splice>,
}

impl Taking<'_> {
    /// True if the whole `hooks` member is to go; else the splices are noted.
    pub(super) fn hooks(&mut self, hooks: &Node, path: &str) -> Result<bool, Refusal> {
        let events = object(hooks, path)?;
        no_duplicates(events)?;
        let mut gone = BTreeSet::new();
        for event in events {
            let path = format!("{path}/{}", event.key);
            let Some(groups) = event.value.elements() else {
                continue;
            };
            let mut gone_groups = BTreeSet::new();
            for group in groups {
                let list = group.get("hooks");
                let handlers = list.and_then(Node::elements).unwrap_or_default();
                let ours: BTreeSet<usize> = handlers
                    .iter()
                    .filter(|handler| our_handler(handler).is_some())
                    .map(|handler| handler.start)
                    .collect();
                if ours.is_empty() {
                    continue;
                }
                if ours.len() == handlers.len() {
                    gone_groups.insert(group.start);
                } else if let Some(list) = list {
                    let items: Vec<_> = handlers.iter().map(|h| (h.start, h.end)).collect();
                    self.drop_items(list, &items, &ours, "");
                }
            }
            let items: Vec<_> = groups.iter().map(|group| (group.start, group.end)).collect();
            if self.goes(&items, &gone_groups, &path) {
                gone.insert(event.start);
            } else {
                self.drop_items(&event.value, &items, &gone_groups, &path);
            }
        }
        let items = spans_of_members(events);
        if self.goes(&items, &gone, path) {
            return Ok(true);
        }
        self.drop_items(hooks, &items, &gone, path);
        Ok(false)
    }

    pub(super) fn env(&mut self, env: &Node, path: &str, ours: &[(String, String)]) -> Result<bool, Refusal> {
        let members = object(env, path)?;
        no_duplicates(members)?;
        let gone: BTreeSet<usize> = members
            .iter()
            .filter(|member| {
                ours.iter()
                    .any(|(key, value)| *key == member.key && member.value.text() == Some(value))
            })
            .map(|member| member.start)
            .collect();
        let items = spans_of_members(members);
        if self.goes(&items, &gone, path) {
            return Ok(true);
        }
        self.drop_items(env, &items, &gone, path);
        Ok(false)
    }

    /// A container goes when all that it holds goes, something did, and it was
    /// not there before.
    fn goes(&self, items: &[(usize, usize)], gone: &BTreeSet<usize>, path: &str) -> bool {
        !gone.is_empty() && gone.len() == items.len() && !self.before.empty.contains_key(path)
    }

    pub(super) fn drop_items(
        &mut self,
        host: &Node,
        items: &[(usize, usize)],
        gone: &BTreeSet<usize>,
        path: &str,
    ) {
        if gone.is_empty() {
            return;
        }
        if gone.len() == items.len() {
            self.splices.push(Splice {
                start: host.start + 1,
                end: host.end.saturating_sub(1),
                text: self.before.empty.get(path).cloned().unwrap_or_default(),
            });
            return;
        }
        let mut kept_before: Option<usize> = None;
        for (index, &(start, end)) in items.iter().enumerate() {
            if !gone.contains(&start) {
                kept_before = Some(end);
                continue;
            }
            let (from, to) = match kept_before {
                // With the comma in front of it.
                Some(previous_end) => {
                    kept_before = Some(end);
                    (previous_end, end)
                }
                // Nothing kept in front: with the comma behind it.
                None => (start, items.get(index + 1).map_or(end, |next| next.0)),
            };
            self.splices.push(Splice {
                start: from,
                end: to,
                text: String::new(),
            });
        }
    }
}
