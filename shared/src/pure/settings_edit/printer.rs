//! Prints nodes in the layout of the file that they go into.

use super::{Kind, Member, Node, quoted, slice};

pub(super) enum Layout<'a> {
    OneLine { spaced: bool },
    Lines { newline: &'static str, unit: &'a str },
}

impl<'a> Layout<'a> {
    pub(super) fn lines(text: &str, unit: &'a str) -> Self {
        let newline = match text.find('\n') {
            Some(at) if at > 0 && text.as_bytes().get(at - 1) == Some(&b'\r') => "\r\n",
            _ => "\n",
        };
        Layout::Lines { newline, unit }
    }
}

/// Prints nodes of `source` in a layout.
pub(super) struct Printer<'a> {
    pub(super) source: &'a str,
    pub(super) layout: &'a Layout<'a>,
}

impl Printer<'_> {
    pub(super) fn member(&self, member: &Member, indent: &str, out: &mut String) {
        out.push_str(&quoted(&member.key));
        out.push_str(match self.layout {
            Layout::OneLine { spaced: false } => ":",
            _ => ": ",
        });
        self.print(&member.value, indent, out);
    }

    pub(super) fn print(&self, node: &Node, indent: &str, out: &mut String) {
        match &node.kind {
            Kind::Object(members) => {
                self.list(members, indent, ('{', '}'), out, |item, inner, out| {
                    self.member(item, inner, out);
                });
            }
            Kind::Array(nodes) => self.list(nodes, indent, ('[', ']'), out, |item, inner, out| {
                self.print(item, inner, out);
            }),
            _ => out.push_str(slice(self.source, node.start, node.end)),
        }
    }

    fn list<T>(
        &self,
        items: &[T],
        indent: &str,
        (open, close): (char, char),
        out: &mut String,
        each: impl Fn(&T, &str, &mut String),
    ) {
        out.push(open);
        let inner = match self.layout {
            Layout::Lines { unit, .. } => format!("{indent}{unit}"),
            Layout::OneLine { .. } => String::new(),
        };
        let break_line = |out: &mut String, indent: &str, first: bool| match self.layout {
            Layout::Lines { newline, .. } => {
                out.push_str(newline);
                out.push_str(indent);
            }
            Layout::OneLine { spaced: true } if !first => out.push(' '),
            Layout::OneLine { .. } => {}
        };
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            break_line(out, &inner, index == 0);
            each(item, &inner, out);
        }
        if !items.is_empty() {
            break_line(out, indent, true);
        }
        out.push(close);
    }
}
