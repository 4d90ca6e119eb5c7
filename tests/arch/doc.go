// Package arch holds the rules of the repository as tests: which package may import which, what a pure package may not
// touch, and what has to be true of the documents. Each failure says what to change. It holds no code of the product.
package arch
