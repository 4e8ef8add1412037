package ringfence_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	ringfence "github.com/ringfence/ringfence/clients/go"
	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// certified returns settings with a certificate for 127.0.0.1, and the credentials that trust it.
func certified(t *testing.T) (string, credentials.TransportCredentials) {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	terms := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate := must[[]byte](t)(x509.CreateCertificate(rand.Reader, terms, terms, key.Public(), key))
	private := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key))
	folder := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert": {Type: "CERTIFICATE", Bytes: certificate}, "key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		check(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(must[*x509.Certificate](t)(x509.ParseCertificate(certificate)))
	return fmt.Sprintf("[tls]\ncert = \"%[1]s/cert\"\nkey = \"%[1]s/key\"\n", folder), credentials.NewClientTLSFromCert(trusted, "")
}

func TestATokenNamesThePrincipalWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	const token = "a token of at least thirty-two characters"
	principal := fmt.Sprintf("[principals.a]\nsha256 = \"%x\"\nacquire = [\"default/Test*\"]\n", sha256.Sum256([]byte(token)))
	secure, trusting := certified(t)
	for settings, options := range map[string][]ringfence.Option{
		principal:          nil,
		secure + principal: {ringfence.WithCredentials(trusting)},
	} {
		_, address := serve(t, shared.redis, settings)
		file := filepath.Join(t.TempDir(), "token")
		check(t, os.WriteFile(file, []byte("another token\n"), 0o600))
		for _, its := range []ringfence.Option{ringfence.WithToken(token), ringfence.WithTokenFile(file)} {
			known := must[*ringfence.Client](t)(ringfence.Dial([]string{address}, append(options, its)...))
			lock, err := known.TryLock(ctx, t.Name())
			if err != nil {
				refused(t, ringfence.ErrUnauthenticated)(lock, err)
				check(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
				lock = must[*ringfence.Lock](t)(known.TryLock(ctx, t.Name()))
			}
			check(t, lock.Unlock())
			refused(t, ringfence.ErrNotAllowed)(known.TryLock(ctx, "another"))
			check(t, known.Close())
		}
		unknown := must[*ringfence.Client](t)(ringfence.Dial([]string{address}, options...))
		refused(t, ringfence.ErrUnauthenticated)(unknown.TryLock(ctx, t.Name()))
		check(t, unknown.Close())
	}
}

// closed returns an address at which nothing listens.
func closed(t *testing.T) string {
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	listener.Close()
	return listener.Addr().String()
}

func TestACoordinatorThatIsNotThereIsPassedOver(t *testing.T) {
	t.Parallel()
	client := dial(t, closed(t), closed(t), shared.coordinator)
	must[*ringfence.Lock](t)(client.TryLock(within(t), t.Name()))
}

func TestCoordinatorsThatAreNotThereAreGivenUp(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	addresses := []string{closed(t), closed(t)}
	client := must[*ringfence.Client](t)(ringfence.Dial(addresses, ringfence.WithTimeout(100*time.Millisecond)))
	_, locked := client.Lock(ctx, t.Name())
	_, tried := client.TryLock(ctx, t.Name())
	_, deposited := client.Account(t.Name()).Deposit(ctx, ringfence.NewRequestID(""), 1)
	for _, err := range []error{locked, tried, deposited} {
		if failure := fails(t, err, ringfence.ErrUnavailable); !failure.Retryable {
			t.Errorf("%#v", failure)
		}
	}
	_, err := ringfence.Dial(nil)
	fails(t, err, ringfence.ErrInvalidInput)
}

func TestAnErrorTellsTheFieldThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, err := dial(t, shared.coordinator).TryLock(within(t), t.Name(), ringfence.WithLease(time.Millisecond))
	failure := fails(t, err, ringfence.ErrInvalidInput)
	if failure.Retryable || failure.MayHaveTakenEffect || !strings.Contains(err.Error(), "lease") || status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

func TestReasonsAreThoseOfTheAPI(t *testing.T) {
	for _, reason := range []ringfence.Reason{
		ringfence.ErrHeld, ringfence.ErrTimedOut, ringfence.ErrLost, ringfence.ErrOtherKind, ringfence.ErrInsufficient,
		ringfence.ErrNoAccount, ringfence.ErrAccountExists, ringfence.ErrAccountClosed, ringfence.ErrUnknownReservation,
		ringfence.ErrCancelled, ringfence.ErrTransferRefused, ringfence.ErrTransferUnfinished, ringfence.ErrSegmentLost,
		ringfence.ErrIDConflict, ringfence.ErrIDTooOld, ringfence.ErrInvalidInput, ringfence.ErrUnauthenticated,
		ringfence.ErrNotAllowed, ringfence.ErrDeadline,
	} {
		if _, known := pb.ErrorReason_value["ERROR_REASON_"+string(reason)]; !known {
			t.Error(reason)
		}
	}
}

// answers is a connection on which calls fail with these errors, one after another.
type answers struct {
	grpc.ClientConnInterface
	errors chan error
}

func (a answers) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return <-a.errors
}

// detailed returns the error of a call that had no effect.
func detailed(t *testing.T, reason pb.ErrorReason) error {
	detail := &pb.ErrorDetail{Reason: reason, Effect: pb.Effect_EFFECT_NONE}
	return must[*status.Status](t)(status.New(codes.Unknown, "a message").WithDetails(detail)).Err()
}

func TestAnEarlierAttemptMayHaveTakenEffect(t *testing.T) {
	unanswered := status.Error(codes.Unavailable, "the connection is closed")
	for reason, may := range map[ringfence.Reason]bool{
		ringfence.ErrUnauthenticated: true,
		ringfence.ErrInsufficient:    false, // the account knows the id
	} {
		connection := answers{errors: make(chan error, 2)}
		connection.errors <- unanswered
		connection.errors <- detailed(t, pb.ErrorReason(pb.ErrorReason_value["ERROR_REASON_"+string(reason)]))
		client := ringfence.New([]grpc.ClientConnInterface{connection}, ringfence.WithTimeout(patience))
		_, err := client.Account("coins").Deduct(within(t), ringfence.NewRequestID(""), 1)
		failure := fails(t, err, reason)
		if failure.MayHaveTakenEffect != may {
			t.Errorf("%#v", failure)
		}
	}
}

func TestAReasonOfALaterReleaseIsUnspecified(t *testing.T) {
	connection := answers{errors: make(chan error, 1)}
	connection.errors <- detailed(t, 1000)
	_, err := ringfence.New([]grpc.ClientConnInterface{connection}).TryLock(within(t), "key")
	fails(t, err, "UNSPECIFIED")
}
