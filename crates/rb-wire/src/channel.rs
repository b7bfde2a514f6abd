//! Forms in which guidance is put into a conversation.

/// The form in which a fragment stands in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A message of the system between the others.
    SystemMessage,
    /// The same, shown to the model only until the user speaks again; needs a beta header.
    ScopedSystemMessage,
    /// A message of the developer.
    DeveloperMessage,
    /// A message of the user.
    UserMessage,
    /// One more text block at the end of the user's last message.
    TextBlock,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 5] = [
        Self::SystemMessage,
        Self::ScopedSystemMessage,
        Self::DeveloperMessage,
        Self::UserMessage,
        Self::TextBlock,
    ];

    /// Stable name: stored, shown and configured by this.
    pub fn id(self) -> &'static str {
        match self {
            Self::SystemMessage => "system-message",
            Self::ScopedSystemMessage => "scoped-system-message",
            Self::DeveloperMessage => "developer-message",
            Self::UserMessage => "user-message",
            Self::TextBlock => "text-block",
        }
    }

    /// The channel of that name.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.id() == id)
    }

    /// What must be in the header `anthropic-beta` for it.
    pub fn beta(self) -> Option<&'static str> {
        (self == Self::ScopedSystemMessage).then_some("mid-conversation-system-clear-at-2026-08-21")
    }
}
