//! The intent word: a shared page that outlives any kill.
