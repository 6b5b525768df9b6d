/** What a browser shows. The job's id and token stand behind the `#` of the address, so a reload finds the answer again. */
export const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Assistant</title>
<style>
  body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 2rem auto; padding: 0 1rem; }
  input, button { font: inherit; padding: 0.5rem; }
  #answer { min-height: 5rem; white-space: pre-wrap; }
</style>
<h1>Assistant</h1>
<form><label>Question <input name="question" required></label> <button>Ask</button></form>
<p id="answer" aria-live="polite"></p>
<p id="approval"></p>
<p id="state" role="status"></p>
<script type="module">
const show = (id, text) => { document.getElementById(id).textContent = text; };

/** Follows one stream of the job. An EventSource that is cut off comes back by itself, to where it was. */
function follow({ id, token }, name, on) {
  const source = new EventSource('/ojs/v1/jobs/' + id + '/streams/' + name + '?access_token=' + token);
  source.addEventListener('chunk', ({ data }) => on.chunk(JSON.parse(data)));
  source.addEventListener('reset', () => on.reset?.());
  source.addEventListener('end', ({ data }) => { source.close(); on.end?.(JSON.parse(data)); });
}

function open(job) {
  let text = '';
  show('answer', '');
  show('approval', '');
  show('state', 'Working …');
  follow(job, 'answer', {
    chunk: ({ chunk: word }) => show('answer', (text += word)),
    reset: () => show('answer', (text = '')),
    end: ({ state }) => { show('approval', ''); show('state', state === 'completed' ? 'Published.' : 'Not published.'); },
  });
  follow(job, 'approval', {
    chunk: ({ chunk: url }) => {
      const link = Object.assign(document.createElement('a'), { href: new URL(url).pathname, textContent: 'Publish?' });
      document.getElementById('approval').replaceChildren(link);
    },
    end: () => show('approval', ''),
  });
}

document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const body = JSON.stringify(Object.fromEntries(new FormData(event.target)));
  const job = await (await fetch('/questions', { method: 'POST', body })).json();
  location.hash = job.id + '/' + job.token;
});

function openHash() {
  const [id, token] = location.hash.slice(1).split('/');
  if (token) open({ id, token });
}
addEventListener('hashchange', openHash);
openHash();
</script>
</html>
`;
