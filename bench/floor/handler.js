/** The least that a handler Worker must do: reads the jobs, and says of each that it is done. */
export default {
  async fetch(request) {
    const { jobs } = await request.json();
    return Response.json({ results: jobs.map(({ id }) => ({ delivery_id: `${id}-1`, status: 'completed' })) });
  },
};
