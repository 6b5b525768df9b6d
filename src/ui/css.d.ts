/** Styles that come with a chunk of their own, as text: `import text from './page.css' with { type: 'text' }`. */
declare module '*.css' {
  const text: string;
  export default text;
}
