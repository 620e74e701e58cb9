//! Prompt texts of Aider, rewritten.

crate::words::words! {
    pub(crate) struct AiderWords {
        summary_prompt = PROMPT;
        summary_prefix = "Before this we spoke about several things, in short:\n";
        described_prefix = "[chat summary] ";
        committed = "The changes are written and committed.";
        edited = "The editor has made those changes.";
        ok = "Ok.";
        files = "These files are *part of the chat now*, and you may change them.\n\n*What stands \
            here is what they hold.* Where another message shows something else for one of them, \
            that is out of date.\n";
        files_ok = "Ok, whatever I change will be in those files.";
        no_files = "So far no file is part of the chat that you may change.";
        no_files_but_map = "No file is part of the chat yet, so change nothing that exists before \
            you have asked me for its file.\nName the files of the repository that *have to \
            change* for what I want, and stop there: I add them, and you go on. Name only those \
            that will most likely change. A file that merely helps to understand the matter need \
            not be named, only those to be edited.";
        no_files_but_map_ok = "Ok, I name the files that have to change for what you want, stop, \
            and wait until you agree.";
        reminder = "Show every change as complete blocks of old and new lines, each under the path of its \
            file.";
        too_long = "No answer: the request held more tokens than the model takes.";
    }
}

const PROMPT: &str = "Here is a part of a conversation between a USER and an ASSISTANT about \
    programming. Sum it up shortly. Say less about what \
is long ago and more about what came last, and start a paragraph where the subject changes. The \
conversation goes on after it, so do not close \
with a conclusion.\nName the functions, libraries and packages that were spoken of, and every file \
whose code stands between fences in what the \
assistant said. Do not use fences yourself.\nWrite as the USER speaking to the ASSISTANT: the user \
is I, the assistant is you. Begin with: I asked you";
