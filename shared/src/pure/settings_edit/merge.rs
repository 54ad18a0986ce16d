//! Where additions go: one splice for each container that gets something.

use super::printer::{Layout, Printer};
use super::{
    Before, Kind, Member, Node, Refusal, Splice, array, canonical, indent_at, is_line_start, no_duplicates,
    object, or_root, slice, spans_of_members,
};

pub(super) struct Merge<'a> {
    pub(super) text: &'a str,
    pub(super) additions: &'a str,
    pub(super) unit: String,
    pub(super) one_line: bool,
    pub(super) before: Before,
    pub(super) splices: Vec<Splice>,
}

impl Merge<'_> {
    pub(super) fn object(&mut self, host: &Node, wanted: &Node, path: &str) -> Result<(), Refusal> {
        let members = object(host, or_root(path))?;
        no_duplicates(members)?;
        let mut missing: Vec<&Member> = Vec::new();
        for member in wanted.members().unwrap_or_default() {
            let path = format!("{path}/{}", member.key);
            match (host.get(&member.key), &member.value.kind) {
                (None, _) => missing.push(member),
                (Some(there), Kind::Object(_)) => self.object(there, &member.value, &path)?,
                (Some(there), Kind::Array(new)) => self.array(there, new, &path)?,
                (Some(there), _) => {
                    let same = canonical(slice(self.text, there.start, there.end))
                        == canonical(slice(self.additions, member.value.start, member.value.end));
                    if !same {
                        return Err(Refusal::Occupied { path });
                    }
                }
            }
        }
        let items = spans_of_members(members);
        self.insert(
            host,
            &items,
            path,
            missing.len(),
            |printer, index, indent, out| {
                if let Some(member) = missing.get(index) {
                    printer.member(member, indent, out);
                }
            },
        );
        Ok(())
    }

    fn array(&mut self, host: &Node, new: &[Node], path: &str) -> Result<(), Refusal> {
        let elements = array(host, path)?;
        let items: Vec<(usize, usize)> = elements.iter().map(|e| (e.start, e.end)).collect();
        self.insert(host, &items, path, new.len(), |printer, index, indent, out| {
            if let Some(node) = new.get(index) {
                printer.print(node, indent, out);
            }
        });
        Ok(())
    }

    /// How the container's items are laid out, by what is there already.
    fn layout(&self, host: &Node, is_empty: bool) -> Layout<'_> {
        let on_one_line =
            self.one_line || (!is_empty && !slice(self.text, host.start, host.end).contains('\n'));
        if on_one_line {
            Layout::OneLine {
                spaced: self.text.contains("\": ") || !self.text.contains("\":"),
            }
        } else {
            Layout::lines(self.text, &self.unit)
        }
    }

    /// One splice that adds `count` items at the end of a container.
    fn insert(
        &mut self,
        host: &Node,
        items: &[(usize, usize)],
        path: &str,
        count: usize,
        print: impl Fn(&Printer<'_>, usize, &str, &mut String),
    ) {
        if count == 0 {
            return;
        }
        let layout = self.layout(host, items.is_empty());
        let printer = Printer {
            source: self.additions,
            layout: &layout,
        };
        let outer = indent_at(self.text, host.start);
        let mut text = String::new();
        if let Some(&(last_start, last_end)) = items.last() {
            // Follow the last item: a line of its own if that has one.
            let own_line = is_line_start(self.text, last_start);
            let indent = indent_at(self.text, last_start);
            for index in 0..count {
                text.push(',');
                match (&layout, own_line) {
                    (Layout::Lines { newline, .. }, true) => {
                        text.push_str(newline);
                        text.push_str(indent);
                    }
                    (Layout::OneLine { spaced: false }, _) => {}
                    _ => text.push(' '),
                }
                print(&printer, index, indent, &mut text);
            }
            self.splices.push(Splice {
                start: last_end,
                end: last_end,
                text,
            });
            return;
        }
        let indent = format!("{outer}{}", self.unit);
        for index in 0..count {
            if index > 0 {
                text.push(',');
            }
            match &layout {
                Layout::Lines { newline, .. } => {
                    text.push_str(newline);
                    text.push_str(&indent);
                }
                Layout::OneLine { spaced: true } if index > 0 => text.push(' '),
                Layout::OneLine { .. } => {}
            }
            print(&printer, index, &indent, &mut text);
        }
        if let Layout::Lines { newline, .. } = &layout {
            text.push_str(newline);
            text.push_str(outer);
        }
        let (start, end) = (host.start + 1, host.end.saturating_sub(1));
        self.before
            .empty
            .insert(path.to_owned(), slice(self.text, start, end).to_owned());
        self.splices.push(Splice { start, end, text });
    }
}
