// Command interop checks what Ebbtide wrote, and writes what Ebbtide checks, with the formats' own libraries.
//
//	interop verify < evidence.json    exit 0 if everything holds, 1 with the reason if not
//	interop write SIZE OLD SECRET     evidence of a ledger of SIZE entries that grew from OLD, signed with a key
//	                                  that Ebbtide wrote
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/transparency-dev/formats/log"
	cosigned "github.com/transparency-dev/formats/note"
	tlogproof "github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/merkle/testonly"
	"golang.org/x/mod/sumdb/note"
)

const witnessName = "witness.example/go"

// Evidence is all that an outsider needs. Byte slices are base64 in JSON.
type Evidence struct {
	Key         string   `json:"key"`
	Witness     string   `json:"witness"`
	Old         string   `json:"old"`
	New         string   `json:"new"`
	Consistency [][]byte `json:"consistency"`
	Entries     [][]byte `json:"entries"`
	Proofs      []string `json:"proofs"`
	Batches     []Batch  `json:"batches"`
}

// Batch is one leaf of a batch with its path, against the root that the batch's entry holds.
type Batch struct {
	Root  []byte   `json:"root"`
	Count uint64   `json:"count"`
	Index uint64   `json:"index"`
	Leaf  []byte   `json:"leaf"`
	Path  [][]byte `json:"path"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "verify":
		var evidence Evidence
		if err := json.NewDecoder(os.Stdin).Decode(&evidence); err != nil {
			return err
		}
		return verify(evidence)
	case len(args) == 4 && args[0] == "write":
		size, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		old, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return err
		}
		evidence, err := write(size, old, args[3])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(evidence)
	}
	return errors.New("usage: interop verify | interop write SIZE OLD SECRET")
}

func verify(evidence Evidence) error {
	if len(evidence.Entries) == 0 || len(evidence.Proofs) != len(evidence.Entries) {
		return fmt.Errorf("%d proofs for %d entries", len(evidence.Proofs), len(evidence.Entries))
	}
	key, err := note.NewVerifier(evidence.Key)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	witness, err := cosigned.NewVerifierForCosignatureV1(evidence.Witness)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	old, err := open(evidence.Old, key, witness)
	if err != nil {
		return fmt.Errorf("old checkpoint: %w", err)
	}
	current, err := open(evidence.New, key, witness)
	if err != nil {
		return fmt.Errorf("new checkpoint: %w", err)
	}
	err = proof.VerifyConsistency(
		rfc6962.DefaultHasher, old.Size, current.Size, evidence.Consistency, old.Hash, current.Hash)
	if err != nil {
		return fmt.Errorf("consistency: %w", err)
	}
	for number, text := range evidence.Proofs {
		if err := verifyProof(text, evidence.Entries[number], key, witness); err != nil {
			return fmt.Errorf("proof %d: %w", number, err)
		}
	}
	hasher := rfc6962.DefaultHasher
	for number, batch := range evidence.Batches {
		hash := hasher.HashLeaf(batch.Leaf)
		if err := proof.VerifyInclusion(hasher, batch.Index, batch.Count, hash, batch.Path, batch.Root); err != nil {
			return fmt.Errorf("batch %d: %w", number, err)
		}
	}
	return nil
}

// open reads a checkpoint that the ledger and the witness both signed.
func open(text string, key, witness note.Verifier) (*log.Checkpoint, error) {
	checkpoint, rest, opened, err := log.ParseCheckpoint([]byte(text), key.Name(), key, witness)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("extension lines %q", rest)
	}
	for _, signature := range opened.Sigs {
		if signature.Name != witness.Name() {
			continue
		}
		if _, err := cosigned.CoSigV1Timestamp(signature); err != nil {
			return nil, err
		}
		return checkpoint, nil
	}
	return nil, errors.New("no cosignature of the witness")
}

func verifyProof(text string, entry []byte, key, witness note.Verifier) error {
	var read tlogproof.TLogProof
	if err := read.Unmarshal([]byte(text)); err != nil {
		return err
	}
	if !bytes.Equal(read.Marshal(), []byte(text)) {
		return errors.New("written again it is another text")
	}
	checkpoint, err := open(string(read.Checkpoint), key, witness)
	if err != nil {
		return err
	}
	hashes := make([][]byte, len(read.Hashes))
	for i := range read.Hashes {
		hashes[i] = read.Hashes[i][:]
	}
	hasher := rfc6962.DefaultHasher
	return proof.VerifyInclusion(hasher, read.Index, checkpoint.Size, hasher.HashLeaf(entry), hashes, checkpoint.Hash)
}

func write(size, old uint64, secret string) (*Evidence, error) {
	tree := testonly.New(rfc6962.DefaultHasher)
	evidence := &Evidence{}
	for number := range size {
		entry := fmt.Appendf(nil, `{"n":%d}`, number)
		tree.AppendData(entry)
		evidence.Entries = append(evidence.Entries, entry)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, err
	}
	witnessSecret, public, err := note.GenerateKey(rand.Reader, witnessName)
	if err != nil {
		return nil, err
	}
	witness, err := cosigned.NewSignerForCosignatureV1(witnessSecret)
	if err != nil {
		return nil, err
	}
	if evidence.Witness, err = cosigned.VKeyToCosignatureV1(public); err != nil {
		return nil, err
	}
	sign := func(size uint64) (string, error) {
		head := log.Checkpoint{Origin: signer.Name(), Size: size, Hash: tree.HashAt(size)}
		signed, err := note.Sign(&note.Note{Text: string(head.Marshal())}, signer, witness)
		return string(signed), err
	}
	if evidence.Old, err = sign(old); err != nil {
		return nil, err
	}
	if evidence.New, err = sign(size); err != nil {
		return nil, err
	}
	if evidence.Consistency, err = tree.ConsistencyProof(old, size); err != nil {
		return nil, err
	}
	for index := range size {
		hashes, err := tree.InclusionProof(index, size)
		if err != nil {
			return nil, err
		}
		written := tlogproof.TLogProof{Index: index, Checkpoint: []byte(evidence.New)}
		for _, hash := range hashes {
			written.Hashes = append(written.Hashes, [sha256.Size]byte(hash))
		}
		evidence.Proofs = append(evidence.Proofs, string(written.Marshal()))
		evidence.Batches = append(evidence.Batches, Batch{
			Root: tree.HashAt(size), Count: size, Index: index, Leaf: evidence.Entries[index], Path: hashes})
	}
	return evidence, nil
}
