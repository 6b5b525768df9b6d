/** The least that a handler Worker must do: reads the jobs, and says of each that it is done. */
export default {
  async fetch(request) {
    const { jobs } = await request.json();
    await Promise.all(jobs.map(run));
    return Response.json({ results: jobs.map(({ id }) => ({ delivery_id: `${id}-1`, status: 'completed' })) });
  },
};

async function run({ type, args: [data] }) {
  if (type !== 'bench.start') return;
  const startedAt = Date.now();
  await (await fetch(`http://127.0.0.1:${data.port}/${data.n}/${startedAt}`)).text();
}
