/** Words that users are not to meet in texts, each with what the field says instead. */
const QUAINT = [
  [/\btold\b/, 'notified, reported'],
  [/\bheard of\b/, 'seen, received'],
  [/\bleft alone\b/, 'skipped, backing off'],
  [/\bcouriers?\b/, 'outbox relay'],
  [/(?<!dead[ -])\bletters? (?:with|to|could|cannot|are|is|wait|waits|were|was)\b/, 'outbox message'],
  [/\bfootings?\b/, 'access mode'],
  [/\b(?:silenced|despair|hopes?)\b/, 'quiet; idle, ready'],
  [/\bwho(?:m|ever|mever)\b/, 'name the actor'],
  [/\bnobody\b/, 'no one, or the thing that is missing: no worker, no queue'],
  [/(?<!there )\b(?:is|are) no (?!longer|more\b|fewer)/, 'is not a'],
  [/\b(?:is|are) to be\b/, 'must be'],
  [/\bis none of\b/, 'is not one of'],
  [/\bso (?:long|many|often)(?! (?:as|that))\b/, 'name the timeout, the interval, the number'],
  [/\b(?:go|goes|went|going) on\b/, 'continue'],
  [/\banew\b/, 'again'],
  [/\bof late\b/, 'recently'],
  [/\b(?:stand|stands|belongs) beside\b/, 'be combined with, belong next to'],
  [/\bstood still\b/, 'was blocked'],
  [/\bdealt with\b/, 'handled'],
  [/\bsomebody\b/, 'name the actor: an operator, a process, the user'],
  [/\blately\b/, 'recently'],
  [/\ball the same\b/, 'anyway, still'],
  [/\btaken for\b/, 'treated as, mistaken for'],
  [/\bin spite of\b/, 'despite'],
  [/\bas (?:it|they) stands?\b/, 'unchanged'],
  [/\bby chance\b/, 'at random; happens to'],
  [/\bno sooner\b/, 'at the earliest, at least'],
  [/\b(?:nowWaits|chores?|patience|strays?|births?)\b/, 'index; feature; timeout; unknown field; creation'],
];

/** Words that pages in plain words do not have either. */
const STIFF = [
  [/\bof (?:its|their|his|your) own\b/, 'separate, your own'],
  [/\bbeside\b(?!-c| Cloudflare)/, 'next to'],
  [/\b(?:is|are) answered\b/, 'gets, returns'],
  [/\bby itself\b/, 'automatically'],
  [/\b(?:any|some)body\b/, 'anyone, someone'],
  [/\b(?:is|are|was|were) refused\b/, 'rejected'],
  [/\bwhat (?:runs|waits|ends|is on record)\b/, 'running jobs, waiting jobs'],
  [/\bfor good\b/, 'permanently'],
  [/\bsign of life\b/, 'heartbeat'],
  [/\bhow (?:it|they) (?:stand|stands|get on|gets on)\b/, 'its state'],
];

/** @returns {string[]} what is quaint in a text, each with what to say instead */
export const quaintIn = (text) => found(QUAINT, text);

/** {@link quaintIn} with the words of {@link STIFF}, too. */
export const stiffIn = (text) => found([...QUAINT, ...STIFF], text);

function found(words, text) {
  const line = text.trim().replace(/\s+/g, ' ');
  return words.flatMap(([pattern, plain]) => {
    const match = new RegExp(pattern.source, 'i').exec(line);
    return match ? [`"${match[0]}" in "${line}": write ${plain}`] : [];
  });
}
