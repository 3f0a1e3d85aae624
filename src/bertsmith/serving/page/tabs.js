// The tabs. Each has one way or several to ask a job of the server's table, which tells the fields, the examples and the
// models; here stands only how they are put before people.
"use strict";
{
const { page } = bertsmith;
// also: optional fields that stand with the needed ones; needs: those that must be filled in here; hides: fields that are
// not shown; when: fields that only some models have; alone: fields of several texts that hold one here; names: what
// fields are called here; short: texts of one line; suits: which examples; prefers: which model is asked first, by its card; explains: a second job
// for the same question.
page.tabs = [
  {
    id: "fill", title: "Fill",
    lead: "Hide a word, and the model says what may stand there. Edit the sentence and watch the chances move.",
    ways: [{
      job: "fill", masks: "text",
      explains: { job: "lens", title: "Layer by layer", given: (given) => ({ text: given.text }) },
    }],
  },
  {
    id: "answer", title: "Answer",
    lead: "Ask a question about a text; the model marks the part that answers it.",
    ways: [{
      job: "answer", order: ["question", "context"],
      explains: {
        job: "attribution", title: "Why this answer?",
        given: (given) => ({ job: "answer", texts: [given.question, given.context] }),
      },
    }],
  },
  {
    id: "tag", title: "Tag", lead: "Names, places and whatever else the model was taught to find.",
    ways: [{ job: "tag" }],
  },
  {
    id: "classify", title: "Classify", lead: "Which class a text is of; a model of inference takes classes of your own.",
    ways: [{
      job: "classify", also: ["labels"], hides: ["pair"], prefers: (card) => !isOfPairs(card),
      when: { labels: isOfPairs, hypothesis: isOfPairs, several: isOfPairs },
      explains: {
        job: "attribution", title: "Why this class?", unless: (given) => Boolean(given.labels),
        given: (given) => ({ job: "classify", texts: [given.text] }),
      },
    }],
  },
  {
    id: "pair", title: "Pair", lead: "Two texts side by side: what have they to do with each other?",
    ways: [
      { id: "similar", job: "similar", title: "Alike", alone: ["others"], hides: ["top_k"],
        names: { text: "First text", others: "Second text" }, suits: (example) => example.others.length < 3 },
      { id: "follows", job: "follows", title: "Follows" },
      {
        id: "entail", job: "classify", title: "Entails", also: ["pair"], needs: ["pair"], prefers: isOfPairs,
        hides: ["labels", "hypothesis", "several"], names: { text: "First text", pair: "Second text" },
      },
      { id: "score", job: "score", title: "Score", also: ["pair"], names: { text: "First text", pair: "Second text" } },
    ],
  },
  {
    id: "search", title: "Search", lead: "Which of your texts come nearest to what you look for.",
    ways: [
      {
        id: "vectors", job: "similar", title: "Your texts, by meaning",
        names: { text: "Look for", others: "In these texts" }, short: ["text"], suits: (example) => example.others.length > 2,
      },
      {
        id: "ranks", job: "rerank", title: "Your texts, read with the query",
        names: { query: "Look for", texts: "In these texts" },
      },
      { id: "server", job: "search", title: "The server's texts", names: { query: "Look for" } },
    ],
  },
  {
    id: "senses", title: "Senses", isPicture: true,
    lead: "One word in many sentences: where its vectors are alike, it means the same.",
    ways: [{ job: "senses" }],
  },
  {
    id: "attention", title: "Attention", isPicture: true, lead: "Which words look at which, in every layer and head.",
    ways: [
      { id: "heads", job: "attention", title: "All heads", also: ["pair"] },
      { id: "step", job: "step", title: "One step, with every number", hides: ["pair"] },
    ],
  },
  {
    id: "tokens", title: "Tokens", lead: "The pieces that a model reads in place of words.",
    ways: [{ job: "tokenize", also: ["pair"] }],
  },
];

// A model whose classes are about two texts; it can also judge labels that it never learnt.
function isOfPairs(card) {
  return Boolean(card) && card.labels.some((label) => /entail/i.test(label));
}
}
